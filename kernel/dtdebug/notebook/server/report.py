"""Formats a complete observation as Markdown, to keep or to send; probable secrets are masked."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Iterable, Iterator

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy import __version__
from dtdebug_taxonomy.model.ranks import RankState, ranges
from dtdebug_taxonomy.model.ranks_view import Branch, Row, Timeline, View

_DEEPEST = 60
"""Maximum depth of the tree of stacks."""


def markdown(view: View, text: str, ranks: Iterable[RankState] = ()) -> str:
    """Return the report: the text for a terminal, each rank, the stacks, the last collectives, versions."""
    parts = [
        ("", [text]),
        ("Ranks", map(_row, view.rows)),
        ("Stacks", _tree(view.tree) if view.tree else ()),
        ("Last collectives", _timeline(view.timeline) if view.timeline else ()),
        ("Versions", _versions(ranks)),
    ]
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(view.taken))
    blocks = [f"# dtdebug: ranks at {when}"]
    for title, lines in parts:
        if block := clean("\n".join(lines)):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block)), default=0))
            blocks += [*([f"## {title}"] if title else []), f"{fence}text\n{block}\n{fence}"]
    return "\n\n".join(blocks) + "\n"


def _row(row: Row) -> str:
    """Format one rank in a line."""
    operation = f"{row.op}{'' if row.seq is None else f' #{row.seq}'}{f' of {row.group}' if row.group else ''}"
    told = (
        f"in {operation}" if row.op else "",
        f"at {row.at}" if row.at else "",
        "" if row.step is None else f"step {row.step}",
        f"{row.memory[0]} bytes on its device, {row.memory[1]} reserved" if row.memory else "",
        "" if row.pid is None else f"process {row.pid}",
        row.host,
    )
    return f"rank {'?' if row.rank is None else row.rank} {row.state}: {', '.join(filter(None, told))}"


def _tree(branch: Branch, level: int = 0) -> Iterator[str]:
    """Yield the frames that ranks share, and below them the branches; `>` marks the user's own code."""
    indent = "  " * level
    yield f"{indent}rank {branch.ranks}{' (culprit)' if branch.culprit else ''}"
    for frame in branch.frames:
        yield f"{indent}{'>' if frame.own else ' '} {frame.at}{f': {frame.code}' if frame.code else ''}"
    if level < _DEEPEST:
        for below in branch.branches:
            yield from _tree(below, level + 1)


def _timeline(timeline: Timeline) -> Iterator[str]:
    """Yield the latest collectives of each class of ranks."""
    parted = "" if timeline.parted is None else f", which diverge at #{timeline.parted}"
    yield f"group {timeline.group}{parted}"
    for lane in timeline.lanes:
        yield f"rank {lane.ranks}{' (culprit)' if lane.culprit else ''}"
        for call in lane.calls:
            marks = f"{' (open)' if call.open else ''}{' (differs)' if call.odd else ''}"
            yield f"  #{call.seq} {call.op}{marks}{f' at {call.at}' if call.at else ''}"


def _versions(ranks: Iterable[RankState]) -> Iterator[str]:
    """Yield our version and the ranks' versions, with rank numbers if they differ."""
    yield f"dtdebug {__version__}, {platform.platform()}"
    found: dict[str, dict[str, list[int]]] = {}
    for state in ranks:
        for name, value in state.versions.items():
            found.setdefault(name, {}).setdefault(value, []).extend(() if state.rank is None else (state.rank,))
    for name, values in sorted(found.items()):
        yield "; ".join(
            f"{name} {value}{f' (rank {ranges(having)})' if len(values) > 1 else ''}"
            for value, having in values.items()
        )
