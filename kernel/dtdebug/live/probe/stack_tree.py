"""Merges the stacks of many ranks into one tree, which shows where they diverge, and compares two reads of them.

Follows STAT (LLNL): ranks with equal stacks are a class; a prefix tree of the classes shows where they diverge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug_taxonomy.model.ranks import TWICE, Frame, RankState, ranges
from dtdebug_taxonomy.stacks.frames import is_library, own_frame, own_frames, short

Progress = Literal["stuck", "slow", "busy", "gone", "unknown"]
"""stuck: same place, same counters; slow: counters moved; busy: moves in the user's code, but no counter does;
gone: the process has ended; unknown: not read twice.
"""

LINES, WIDTH = 40, 110
"""Maximum lines, and characters of a line, of a rendered tree: one screen."""
_SHAPES = ((12, 99), (8, 99), (5, 99), (5, 4), (3, 3), (4, 2), (2, 2), (3, 1))
"""(branches of a node, branchings below each other) to show: the first that fits the screen."""
_RANGES = 8
_LEVELS = 50
"""Maximum depth of branchings: ranks in a recursion could have thousands."""


class StackClass(msgspec.Struct, frozen=True):
    """Ranks whose stacks are equal."""

    ranks: tuple[int, ...]
    stack: tuple[Frame, ...]


class StackNode(msgspec.Struct, frozen=True):
    """Frames that some ranks share, and the branches where they diverge."""

    frames: tuple[Frame, ...]
    """Outermost first; empty for the root if the ranks share nothing."""
    ranks: tuple[int, ...]
    branches: tuple[StackNode, ...]
    """Branches, the largest first."""


def classes(states: Iterable[RankState]) -> tuple[StackClass, ...]:
    """Group the ranks by stack, the largest class first; ranks with an unknown stack are left out."""
    found: dict[tuple[Frame, ...], list[int]] = {}
    same: dict[tuple[str, int, str], Frame] = {}  # only some sources of a stack know the text of a line
    for rank, state in _by_rank(states).items():
        if state.stack:
            stack = tuple([same.setdefault((f.file, f.line, f.function), f) for f in state.stack])
            found.setdefault(stack, []).append(rank)
    rows = [StackClass(tuple(sorted(ranks)), stack) for stack, ranks in found.items()]
    return tuple(sorted(rows, key=lambda row: (-len(row.ranks), row.ranks)))


def stack_tree(rows: Sequence[StackClass]) -> StackNode:
    """Return the prefix tree of classes; chains without a branch are joined."""
    return _node(list(rows), 0)


def _node(rows: list[StackClass], depth: int, level: int = 0) -> StackNode:
    end = depth + _common_length(rows, depth)
    parts: dict[Frame, list[StackClass]] = {}
    for row in rows:
        if len(row.stack) > end:
            parts.setdefault(row.stack[end], []).append(row)
    if level < _LEVELS:
        branches = [_node(part, end, level + 1) for part in parts.values()]
    else:
        branches = [StackNode(row.stack[end:], row.ranks, ()) for part in parts.values() for row in part]
    ranks = tuple(sorted(rank for row in rows for rank in row.ranks))
    frames = rows[0].stack[depth:end] if rows else ()
    return StackNode(frames, ranks, tuple(sorted(branches, key=lambda n: (-len(n.ranks), n.ranks))))


def _common_length(rows: list[StackClass], depth: int) -> int:
    """Return the number of frames from a depth on that all stacks share."""
    if not rows:
        return 0
    first, most = rows[0].stack, min(len(row.stack) for row in rows) - depth
    for row in rows[1:]:
        most = next((i for i in range(most) if row.stack[depth + i] != first[depth + i]), most)
    return most


def to_text(states: Iterable[RankState], culprits: Collection[int] = (), lines: int = LINES) -> str:
    """Format the tree on one screen, however many ranks; `>` marks the user's own code."""
    known = _by_rank(states)
    rows = classes(known.values())
    root = stack_tree(rows)
    head = [f"{_count(len(root.ranks), 'rank')}, {_count(len(rows), 'different stack')}"]
    if dark := known.keys() - set(root.ranks):
        head.append(f"no stack of rank {ranges(dark, _RANGES)}")
    room = max(lines - len(head), 2)
    body: list[str] = []
    for most, levels in _SHAPES:
        body = list(islice(_lines(root, most, levels, frozenset(culprits), ""), room + 1))
        if len(body) <= room:
            break
    else:
        body = [*body[: room - 1], "... and more"]
    return "\n".join((*head, *(_clip_line(line) for line in body)))


def _lines(node: StackNode, most: int, levels: int, culprits: frozenset[int], indent: str) -> Iterator[str]:
    if node.frames or not node.branches:
        mark = " <- culprit" if culprits.issuperset(node.ranks) and node.ranks else ""
        size = f" {len(node.ranks)} ranks" if len(node.ranks) > 1 else ""
        yield f"{indent}[{ranges(node.ranks, _RANGES)}]{size}{mark}"
        indent += "  "
        yield from (indent + line for line in _frames(node, 1 if node.branches else 3))
    if not levels:
        if node.branches:
            yield f"{indent}... {_count(len(node.branches), 'branch', 'branches')} below"
        return
    first, last = _split(len(node.branches), most)
    for branch in node.branches[:first]:
        yield from _lines(branch, most, levels - 1, culprits, indent)
    left = node.branches[first : len(node.branches) - last]
    if left:
        more = _count(len(left), "more branch", "more branches")
        yield f"{indent}... {more}, ranks {ranges((r for b in left for r in b.ranks), _RANGES)}"
    for branch in node.branches[len(node.branches) - last :]:
        yield from _lines(branch, most, levels - 1, culprits, indent)


def _split(branches: int, most: int) -> tuple[int, int]:
    """Return how many of the largest and of the smallest branches to show: outliers matter more than a third crowd."""
    return (branches, 0) if branches <= most else (most - most // 2, most // 2)


def _frames(node: StackNode, own: int) -> Iterator[str]:
    """Yield the user's innermost frames and the library's last one; count the rest."""
    mine = [i for i, frame in enumerate(node.frames) if not is_library(frame.file)]
    kept = {*mine[-own:], len(node.frames) - 1} if node.frames else set()
    skipped = 0
    for i, frame in enumerate(node.frames):
        if i not in kept:
            skipped += 1
            continue
        if skipped:
            yield f"  ({_count(skipped, 'frame')})"
        skipped = 0
        code = f"  {clean(frame.code).strip()}" if frame.code and not is_library(frame.file) else ""
        yield f"{' ' if is_library(frame.file) else '>'} {short_frame(frame)}{code}"


def short_frame(frame: Frame) -> str:
    """Format a frame briefly: file, line, function."""
    return clean(f"{short(frame.file)}:{frame.line} {frame.function}")


def _clip_line(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number} {one if number == 1 else several or one + 's'}"


def compare(before: Iterable[RankState], after: Iterable[RankState]) -> dict[int, Progress]:
    """Return each rank's progress between two observations."""
    early, late = _by_rank(before), _by_rank(after)
    return {rank: _progress(early.get(rank), late.get(rank)) for rank in sorted(early.keys() | late.keys())}


def _progress(a: RankState | None, b: RankState | None) -> Progress:
    if b is not None and b.alive is False:
        return "gone"
    if a is None or b is None:
        return "unknown"
    if a.pid != b.pid and b.facts.get(TWICE):
        return "unknown"  # two processes have the rank, and each observation read a different one
    if a.pid != b.pid or _counters_differ(a, b):
        return "slow"
    if not (a.stack and b.stack):
        return "unknown"
    if a.stack == b.stack:
        return "stuck"
    # A library that polls while it waits changes only its own frames.
    return "stuck" if own_frames(a.stack) == own_frames(b.stack) and own_frame(b.stack) is not None else "busy"


def _counters_differ(a: RankState, b: RankState) -> bool:
    """True if a counter of both observations differs."""
    return any(b_value != a_value for a_value, b_value in _pairs(_counters(a), _counters(b)))


def _counters(s: RankState) -> dict[tuple[str, str], int | None]:
    groups = {(g.name, part): getattr(g, part) for g in s.groups for part in ("enqueued", "completed")}
    return {**groups, ("", "step"): s.step}


def _pairs(
    a: Mapping[tuple[str, str], int | None], b: Mapping[tuple[str, str], int | None]
) -> Iterator[tuple[int, int]]:
    for key, value in a.items():
        other = b.get(key)
        if value is not None and other is not None:
            yield value, other


def progress_text(found: Mapping[int, str]) -> str:
    """Format as `stuck: 0-2,4-7; busy: 3`, in the order of concern."""
    order: tuple[Progress, ...] = ("gone", "busy", "stuck", "slow", "unknown")
    rows = ((kind, [rank for rank, now in found.items() if now == kind]) for kind in order)
    return "; ".join(f"{kind}: {ranges(ranks, _RANGES)}" for kind, ranks in rows if ranks)


def _by_rank(states: Iterable[RankState]) -> dict[int, RankState]:
    """Return one state for each rank: of two, as after a restart, the later."""
    found: dict[int, RankState] = {}
    for state in states:
        if state.rank is not None:
            other = found.get(state.rank)
            if other is None or (state.time or 0.0) >= (other.time or 0.0):
                found[state.rank] = state
    return found
