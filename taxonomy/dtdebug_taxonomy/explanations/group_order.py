"""Ranks that wait on one line in different groups: `new_group` was called in another order, or for other members."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.account_words import where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for
from dtdebug_taxonomy.model.account import Place
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.ranks import Frame, RankState
from dtdebug_taxonomy.stacks.frames import is_library
from dtdebug_taxonomy.text.pattern_matcher import plain

EVIDENCE = "groups-made-in-another-order"
_SYMPTOM = "D.2.1"
_PROBABILITY = 0.9
_DEFAULT = "0"
"""Name of the group of all ranks."""
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the line on which ranks wait in groups of other numbers, each as its rank counts those that it made."""
    rows = [(s, at, n) for s in context.incident.snapshot.ranks if (at := _own_line(s)) and (n := _number(s))]
    same = {(at.file, at.line, s.pending.op, s.pending.seq, _members(s)) for s, at, _ in rows if s.pending}
    if len({n for _, _, n in rows}) < 2 or len(same) > 1:
        return
    at = rows[0][1]
    place = Place(file=at.file, line=at.line, code=at.code)
    groups: dict[int, list[int]] = {}
    for state, _, number in rows:
        groups.setdefault(number, []).append(state.rank or 0)
    shown = ", ".join(
        f"the {_ORDINALS.get(n, f'{n}th')} on rank{'s' * (len(ranks) > 1)} {ranges(ranks)}"
        for n, ranks in sorted(groups.items())
    )
    title = f"The group of {where(place)} is not the same on all ranks: of those made by `new_group`, it is {shown}"
    reason = Reason(
        evidence=EVIDENCE,
        means="The group that each rank waits in.",
        of_account=True,
        source="measured",
        weight=2.5,
        line=at.line,
        words=at.code,
        rank=rows[0][0].rank,
        file=at.file,
    )
    found = explanation_for(
        _SYMPTOM,
        plain(title, 500),
        "The n-th call of `new_group` makes one group on every rank, and these ranks wait in different ones.",
        "Let every rank call `new_group` for all groups in one order, member or not, and use the same one here.",
        _PROBABILITY,
        reason,
    )
    yield replace(found, file=at.file, line=at.line, settled=False)


def _own_line(state: RankState) -> Frame | None:
    return next((f for f in reversed(state.stack) if not is_library(f.file)), None)


def _number(state: RankState) -> int:
    """Return the place of the group that a rank waits in among those that it made, from 1; 0 if it waits in none."""
    made = [g.name for g in state.groups if g.name != _DEFAULT]
    pending = state.pending
    return made.index(pending.group) + 1 if pending is not None and pending.group in made else 0


def _members(state: RankState) -> tuple[int, ...]:
    return next((g.ranks for g in state.groups if state.pending is not None and g.name == state.pending.group), ())
