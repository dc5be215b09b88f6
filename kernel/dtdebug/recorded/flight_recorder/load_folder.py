"""Loads all dumps of a folder as programs."""

from __future__ import annotations

from pathlib import Path

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.flight_recorder import load_dump, sandbox
from dtdebug.recorded.flight_recorder.rank_program import Program


def programs(folder: Path, prefix: str | None = None) -> tuple[dict[int, Program], set[int], list[str]]:
    """Return the programs by rank, the ranks whose dump can't be read, and notes. Raises FlightError."""
    found, notes = load_dump.find_dumps(folder, prefix)
    result: dict[int, Program] = {}
    unread = set()
    late = 0
    for item, made in zip(found, sandbox.every(found), strict=True):
        if isinstance(made, str):
            unread.add(item)
            late += made == sandbox.UNREAD
            if made:
                notes.append(made)
            continue
        result[item.rank] = made
        made.path = str(item.path)
        if made.bad:
            notes.append(f"{clean(item.path.name)}: {made.bad} entries make no sense and were left out")
    if late:
        notes.append(f"{late} more dumps were not read: others cost too much time; move those away")
    prefixes = {item.prefix for item in found if item.rank in result}
    return result, {item.rank for item in unread if item.prefix in prefixes}, notes
