"""Collectives that a rank comes to, or not, by a value of its own: its data, a random number, its machine, a file."""

from __future__ import annotations

from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.divergence.decisions import Divergence, of_check
from dtdebug_taxonomy.source.python.code import Code

_SOURCES = {
    "batch": "its own part of the data",
    "part": "its own part of the data",
    "loader": "its own part of the data",
    "random": "a random number of its own",
    "machine": "what its own process or machine says",
    "file": "what it finds on the disk at that moment",
    "signal": "a signal, which need not come to all at once",
}


def check(code: Code) -> Iterator[Hit]:
    """Report the condition by which the rank leaves, or the call that it comes to."""
    for found in of_check(code, "DT124"):
        yield Hit(code.span(found.node), _message(code, found))


def _message(code: Code, found: Divergence) -> str:
    source = _SOURCES[found.kind]
    if found.decided is None:
        return (
            f"Each rank decides this by {source}: one that leaves does not come to {found.call}(), where others wait."
        )
    line = code.text.place(code.span(found.decided).start).line
    if found.how == "loop":
        return f"Each rank runs this once for each item of {source} (line {line}): with one item more it waits alone."
    return f"Each rank decides at line {line} by {source} whether it comes to {found.call}(): others may wait there."
