"""Reads what the ranks have noted of repeated steps, and makes what was found safe to be shown."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from dtdebug.privacy.sanitize import clean, one_line
from dtdebug.storage import state_dir
from dtdebug_taxonomy.model.training import Violation

_FILES = 4096
T = TypeVar("T")


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Result of an experiment whose ranks noted what they saw."""

    violations: tuple[Violation, ...] = ()
    note: str = ""
    """One sentence on what was looked at, or why nothing could be; nothing where the violations say it."""


def read_rows(folder: Path, rows: msgspec.json.Decoder[T], most: int) -> list[T]:
    """Return the ranks' notes, without malformed lines; `most` bytes of each rank are read."""
    found: list[T] = []
    for path in sorted(folder.glob("*.jsonl"))[:_FILES]:
        try:
            raw = state_dir.read_start(path, most)
        except OSError:
            continue
        for line in raw.splitlines():
            try:
                found.append(rows.decode(line))
            except (ValueError, RecursionError):  # truncated, or of another version
                continue
    return found


def shown(v: Violation) -> Violation:
    """Return a violation that is safe to be shown."""
    return msgspec.structs.replace(
        v, file=clean(v.file), means=one_line(v.means, 600), cause=one_line(v.cause, 300), fix=one_line(v.fix, 300)
    )
