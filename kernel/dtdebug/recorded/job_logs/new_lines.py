"""Finds lines that a healthy earlier run of the same job did not print, by shape; shapes of few logs come first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs.line_judge import shape
from dtdebug.recorded.log_files.excerpt import LogError
from dtdebug.recorded.log_files.line_blocks import lines_of
from dtdebug.recorded.log_files.line_shapes import KeptLine, Shapes
from dtdebug.recorded.log_files.sources import LogSource, find_logs, open_log

_MOST = 256 << 10
_SHOWN, _WORDS = 200, 300


class NewShape(NamedTuple):
    """Shape of lines that a run prints and the healthy run did not."""

    text: str
    """First line of this shape."""
    file: str
    line: int
    files: int
    """Number of files with such lines."""


def new(paths: Sequence[str], healthy: Sequence[str]) -> tuple[list[NewShape], list[str]]:
    """Return the new shapes, those of few files first, and notes on unreadable logs of the healthy run."""
    known: set[bytes] = set()
    sources, unread = find_logs(list(healthy))
    for source in sources:
        rows, why = _first_lines(source)
        unread += [why] if why else []
        known.update(shape(row.raw) for row in rows)
    found: dict[bytes, tuple[str, KeptLine]] = {}
    count: dict[bytes, int] = defaultdict(int)
    for source in find_logs(list(paths))[0]:
        mine: set[bytes] = set()
        for row in _first_lines(source)[0]:
            key = shape(row.raw)
            if key not in known and key.strip():
                mine.add(key)
                found.setdefault(key, (source.name, row))
        for key in mine:
            count[key] += 1
    rows_ = [
        NewShape(clean(row.raw.decode("utf-8", "replace")).strip()[:_WORDS], file, row.number, count[key])
        for key, (file, row) in found.items()
    ]
    return sorted(rows_, key=lambda n: n.files)[:_SHOWN], unread


def _first_lines(source: LogSource) -> tuple[list[KeptLine], str]:
    """Return the first line of each shape of a log, and the reason if it could not be read."""
    shapes = Shapes(keep=1, most=_MOST)
    try:
        with open_log(source) as file:
            for run in lines_of(file):
                shapes.take(run)
    except (OSError, EOFError, ValueError) as error:
        return [], str(error) if isinstance(error, LogError) else f"{source.name}: {error}"
    return shapes.kept, ""
