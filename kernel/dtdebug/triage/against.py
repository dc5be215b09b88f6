"""What a healthy earlier run of the same job did not print: shapes of lines that are new, those of few logs first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from dtdebug.clean import clean
from dtdebug.logs.opened import LogSource, find_logs, opened
from dtdebug.logs.reader import LogError
from dtdebug.logs.shapes import Kept, Shapes
from dtdebug.logs.whole import lines_of
from dtdebug.triage.judge import shape

_MOST = 256 << 10
_SHOWN, _WORDS = 200, 300


class New(NamedTuple):
    """Lines that a run prints and the healthy one did not."""

    text: str
    """The first of them."""
    file: str
    line: int
    files: int
    """Files that hold such lines."""


def new(paths: Sequence[str], healthy: Sequence[str]) -> tuple[list[New], list[str]]:
    """The new shapes, those of few files first; and what could not be read of the healthy run."""
    known: set[bytes] = set()
    sources, unread = find_logs(list(healthy))
    for source in sources:
        rows, why = _kept(source)
        unread += [why] if why else []
        known.update(shape(row.raw) for row in rows)
    found: dict[bytes, tuple[str, Kept]] = {}
    count: dict[bytes, int] = defaultdict(int)
    for source in find_logs(list(paths))[0]:
        mine: set[bytes] = set()
        for row in _kept(source)[0]:
            key = shape(row.raw)
            if key not in known and key.strip():
                mine.add(key)
                found.setdefault(key, (source.name, row))
        for key in mine:
            count[key] += 1
    rows_ = [
        New(clean(row.raw.decode("utf-8", "replace")).strip()[:_WORDS], file, row.number, count[key])
        for key, (file, row) in found.items()
    ]
    return sorted(rows_, key=lambda n: n.files)[:_SHOWN], unread


def _kept(source: LogSource) -> tuple[list[Kept], str]:
    """The first lines of each shape of a log, and why it could not be read."""
    shapes = Shapes(keep=1, most=_MOST)
    try:
        with opened(source) as file:
            for run in lines_of(file):
                shapes.take(run)
    except (OSError, EOFError, ValueError) as error:
        return [], str(error) if isinstance(error, LogError) else f"{source.name}: {error}"
    return shapes.kept, ""
