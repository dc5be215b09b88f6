"""Builds the tree of all ranks' stacks that front ends draw, bounded for any number of ranks and frames."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from dtdebug.live.probe import stack_tree
from dtdebug.live.probe.stack_tree import StackNode
from dtdebug.notebook.cells import frame_words
from dtdebug.privacy.sanitize import clean, one_line
from dtdebug_taxonomy.model.ranks import Frame, RankState, ranges
from dtdebug_taxonomy.model.ranks_view import Branch, FrameRow
from dtdebug_taxonomy.stacks.frames import is_library

_RANGES = 64
_SHAPES = ((16, 16), (8, 6), (5, 3))
"""(branches per node, levels) to keep; the first shape that yields a small enough tree is used."""
_MOST = 200
"""Maximum number of branches of a tree."""
_OUTER, _INNER = 6, 18
"""Frames kept at the outer and the inner end of a long chain."""
_AT, _CODE = 120, 200


def branch(states: Iterable[RankState], culprits: Collection[int]) -> Branch | None:
    """Return the tree of the known stacks, or None if no stack is known."""
    rows = stack_tree.classes(states)
    if not rows:
        return None
    root = stack_tree.stack_tree(rows)
    shape = next((shape for shape in _SHAPES if _size(root, *shape, _MOST) <= _MOST), _SHAPES[-1])
    return _branch(root, frozenset(culprits), *shape)


def _size(node: StackNode, most: int, levels: int, limit: int) -> int:
    """Count the branches of the bounded tree; stop counting above the limit."""
    if not levels:
        return 1 + bool(node.branches)
    total = 1
    for below in node.branches[: most + 1]:
        total += _size(below, most, levels - 1, limit - total)
        if total > limit:
            break
    return total


def _branch(node: StackNode, culprits: frozenset[int], most: int, levels: int) -> Branch:
    kept = _select_branches(node.branches, culprits, most if levels else 0)
    below = [_branch(part, culprits, most, levels - 1) for part in kept]
    if len(kept) < len(node.branches):
        shown = {part.ranks for part in kept}
        rest = sorted(rank for part in node.branches if part.ranks not in shown for rank in part.ranks)
        below.append(Branch(ranks=ranges(rest, _RANGES), count=len(rest)))
    return Branch(
        ranks=ranges(node.ranks, _RANGES),
        count=len(node.ranks),
        culprit=bool(node.ranks) and culprits.issuperset(node.ranks),
        frames=tuple(_frames(node.frames)),
        branches=tuple(below),
    )


def _select_branches(branches: Sequence[StackNode], culprits: frozenset[int], most: int) -> list[StackNode]:
    """Return the branches of culprits, then the largest and the smallest ones, in their original order."""
    if len(branches) <= most:
        return list(branches)
    ends = [i for pair in zip(range(len(branches)), reversed(range(len(branches))), strict=True) for i in pair]
    order = sorted(dict.fromkeys(ends), key=lambda i: culprits.isdisjoint(branches[i].ranks))
    return [branches[i] for i in sorted(order[:most])]


def _frames(frames: Sequence[Frame]) -> Iterable[FrameRow]:
    if len(frames) <= _OUTER + _INNER + 1:
        return map(frame_row, frames)
    gap = FrameRow(at=f"... {len(frames) - _OUTER - _INNER} frames")
    return (*map(frame_row, frames[:_OUTER]), gap, *map(frame_row, frames[-_INNER:]))


def frame_row(frame: Frame) -> FrameRow:
    """Return a frame as front ends draw it."""
    own = not is_library(frame.file)
    at = cell_or_file(frame.file, frame.line, frame.function)
    return FrameRow(at=at, code=one_line(frame.code, _CODE) if own else "", own=own)


@lru_cache(maxsize=8192)  # ranks share most places
def cell_or_file(file: str, line: int, function: str) -> str:
    """Format a place as `cell In[3], line 6, in train` or `train.py:6 train`."""
    frame = Frame(file[-1000:] if file.startswith(("/", "\\")) else file[:1000], line, function[:200])
    text = clean(frame_words(frame)) if file.startswith("cell ") else stack_tree.short_frame(frame)
    return " ".join(text.split())[:_AT]
