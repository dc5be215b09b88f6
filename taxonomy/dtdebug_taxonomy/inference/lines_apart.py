"""Finds the function in which the stacks of a hang part: some ranks have gone on to a later line, the others have not.

Each stack is read from its outermost frame on. The last frame that all ranks share in the user's own code, at two
different lines, is where one side called what the other did not: two sides that both wait for all ranks, in different
operations, can't be brought together by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from msgspec.structs import replace

from dtdebug_taxonomy.model.claims import Claim, Record, texts
from dtdebug_taxonomy.model.ranks import CallSite, Frame, Kind, RankState, Verdict, say, spell
from dtdebug_taxonomy.stacks.activity import in_step_of_all, is_in_backward
from dtdebug_taxonomy.stacks.frames import is_library, spell_place

_APART = frozenset({"skipped", "replaced", "not_arrived"})
"""Kinds of verdicts after which two sides wait for each other."""
GRADIENTS = "the gradient all-reduce"
"""Operation in which a rank in a backward pass waits."""


class LinesApart(NamedTuple):
    """Two lines of one function, and the ranks at each."""

    later: Frame
    reached: tuple[int, ...]
    earlier: Frame
    others: tuple[int, ...]

    @property
    def frames(self) -> dict[int, Frame]:
        """Return the frame of each rank in the function."""
        return {**dict.fromkeys(self.reached, self.later), **dict.fromkeys(self.others, self.earlier)}


def find_lines_apart(states: Sequence[RankState]) -> LinesApart | None:
    """Return where the stacks of the ranks part, if that is in one function of the user's, at two lines."""
    known = [s for s in states if s.rank is not None and s.stack]
    if len(known) < 2 or len(known) < len(states):
        return None
    for depth in count():
        if any(len(s.stack) <= depth for s in known):
            return None
        frames = [s.stack[depth] for s in known]
        if len({(f.file, f.function) for f in frames}) > 1:
            return None
        lines = sorted({f.line for f in frames})
        if len(lines) > 1:
            break
    if len(lines) != 2 or is_library(frames[0].file) or not lines[0]:
        return None
    sides = [[(s.rank or 0, f) for s, f in zip(known, frames, strict=True) if f.line == line] for line in lines]
    (others, early), (reached, late) = ((tuple(sorted(r for r, _ in side)), side[0][1]) for side in sides)
    return LinesApart(late, reached, early, others)


def step_of_lines_apart(verdict: Verdict, states: Sequence[RankState]) -> str:
    """Return what to look at where two sides wait for each other; "" where they do not, or share no function."""
    found = _sides_apart(verdict, states) if verdict.kind in _APART else None
    if found is None:
        return ""
    late, early = (spell_place(f.file, f.line) for f in (found.later, found.earlier))
    if all(is_in_backward(s) for s in states if s.rank in found.others):  # which all ranks do in each pass
        return f"Look at the condition before {late}: it must come out alike on all ranks."
    return f"Look at the conditions before {early} and {late}: they must come out alike on all ranks."


def tell_lines_apart(verdict: Verdict, states: Sequence[RankState]) -> Verdict:
    """Return the verdict on ranks that did not arrive, with the lines at which both sides wait for all ranks."""
    found = _sides_apart(verdict, states) if verdict.kind == "not_arrived" else None
    if found is None:
        return verdict
    by_rank = {s.rank: s for s in states}
    op = {side: _operation([by_rank[r] for r in side]) for side in (found.reached, found.others)}
    if not all(op.values()):
        return verdict
    place, other = (spell_place(f.file, f.line) for f in (found.later, found.earlier))
    wait = say(found.others, "wait").removeprefix(spell(found.others)).strip()
    summary = (
        f"{place} in {found.later.function} is reached by {spell(found.reached)} only, in {op[found.reached]}; "
        f"{spell(found.others)} {wait} in {op[found.others]} at {other}."
    )
    frames = found.frames
    order = (*verdict.culprits, *verdict.waiting)
    sites = tuple(CallSite(r, frames[r].file, frames[r].line, frames[r].function) for r in order[: len(verdict.sites)])
    claims = (*verdict.claims, *_of_backward(found, by_rank))
    kind: Kind = "skipped" if verdict.culprits == found.others else "not_arrived"
    return replace(verdict, kind=kind, summary=summary, sites=sites, claims=claims, evidence=texts(claims))


def _sides_apart(verdict: Verdict, states: Sequence[RankState]) -> LinesApart | None:
    """Return where the two sides of a verdict part, if each rank of either waits for all ranks."""
    if not verdict.culprits or not all(map(in_step_of_all, states)):
        return None
    found = find_lines_apart(states)
    return found if found and {verdict.culprits, verdict.waiting} == {found.reached, found.others} else None


def _operation(states: Sequence[RankState]) -> str:
    """Return what all ranks of a side wait in, if that is one operation."""
    ops = {
        s.pending.op if s.pending is not None
        else GRADIENTS if is_in_backward(s)
        else s.waiting.op if s.waiting is not None
        else ""
        for s in states
    }  # fmt: skip
    return ops.pop() if len(ops) == 1 else ""


def _of_backward(found: LinesApart, by_rank: dict[int | None, RankState]) -> list[Claim]:
    """Return claims on ranks whose stack names no operation: they are in a backward pass."""
    return [
        Claim(
            what="waits", ranks=(rank,), op=GRADIENTS, file=frame.file, line=frame.line, function=frame.function,
            record=Record(source="stack", path=frame.file, line=frame.line, rank=rank, words=frame.code),
        )
        for rank, frame in sorted(found.frames.items())
        if (state := by_rank[rank]).pending is None and state.waiting is None and is_in_backward(state)
    ]  # fmt: skip
