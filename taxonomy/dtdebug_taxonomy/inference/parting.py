"""Finds the test or loop at which the ranks of a hang parted: what each rank has there, laid side by side.

Where a rank stands says how a test went for it; its values say so where it stands elsewhere. Values that contradict the
place are older or newer than the test, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from dtdebug_taxonomy.model.account import Branch, NamedValue, Parting, Side
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.stacks.frames import is_library

_PARTED = frozenset(
    {"skipped", "extra", "replaced", "wrong_size", "wrong_dtype", "not_arrived", "left", "not_understood"}
)
"""Kinds of verdicts after which the ranks are in different places of one program."""
_OTHER_CALLS = frozenset({"skipped", "extra", "replaced", "wrong_size", "wrong_dtype"})
"""Kinds of verdicts after which the n-th calls of the ranks differ, and all before it agree."""
_WEAKEST = (False, False, False, False)
_AROUND = frozenset({"break", "continue", "return"})
_Key = tuple[str, int]
_BY_RANK = re.compile(r"rank|master|main|primary|zero", re.IGNORECASE)


class _View(NamedTuple):
    """One test as one rank has it."""

    rank: int
    branch: Branch
    outcome: bool | int | None
    stands: bool
    """True if the place of the rank decides the outcome."""
    values: tuple[NamedValue, ...]


def find_parting(states: Iterable[RankState], verdict: Verdict) -> Parting | None:
    """Return the test or loop that sent the ranks of a verdict different ways, or None if none is known to."""
    known = {s.rank: s for s in states if s.rank is not None and s.branches}
    if verdict.kind == "left" and known and not {*verdict.culprits} & {*known}:
        return _left_inside(known, verdict)
    if verdict.kind not in _PARTED or len(known) < 2:
        return None
    culprits, others = _two_sides(known, verdict)
    if not culprits or not others:
        return None
    keys = list(dict.fromkeys(_key(b) for s in known.values() for b in s.branches))
    found = []
    for n, key in enumerate(keys):
        one, other = ([v for r in side if (v := _view(known[r], key)) is not None] for side in (culprits, others))
        score = _score(one, other)
        if score is None and verdict.kind in _OTHER_CALLS:
            one, other = _by_other_calls(one, other)
            score = _WEAKEST if one and other else None
        if score is not None:
            found.append(((*score, -n), one, other))
    if found:
        _, one, other = max(found, key=lambda row: row[0])
        return _parting(one, other, verdict)
    around = _way_around(known, keys, culprits, others, verdict)
    if around is None:
        return None
    away = (known[rank] for rank in around.sides[0].ranks if rank in known) if around.sides else ()
    loops = (b for state in away for b in state.branches if b.kind == "while")
    return replace(around, polls=next((b for b in loops if any(link.how == "file" for link in b.links)), None))


def is_by_rank(parting: Parting) -> bool:
    """True if a test asks for the rank itself: it differs by intent."""
    names = [parting.text, *(v.name for side in parting.sides for v in side.values)]
    return any(_BY_RANK.search(name) for name in names)


def _left_inside(known: dict[int, RankState], verdict: Verdict) -> Parting | None:
    """Return the innermost test for the rank behind which all that wait stand, if others ended without their call.

    What such a test asks for is the same in each pass, so those that ended went the other way.
    """
    waiting = [known[r] for r in verdict.waiting if r in known]
    for branch in waiting[0].branches if waiting else ():
        stays = [v for s in waiting if (v := _view(s, _key(branch))) is not None and v.stands]
        told = branch.conditions[0] if branch.conditions else None
        if branch.kind != "if" or told is None or not told.fixed or len(stays) < len(waiting):
            continue
        gone = Side(ranks=verdict.culprits, result=not told.result)
        sides = (*_sides(stays, {v.rank: v.values for v in stays}), gone)
        parting = Parting(branch=branch, text=told.text, sides=sides, sure=False)
        if len(sides) == 2 and is_by_rank(parting):
            return parting
    return _left_by_return(waiting, verdict)


def _left_by_return(waiting: Sequence[RankState], verdict: Verdict) -> Parting | None:
    """Return the only test that leads out of the program's main function before the place where the others wait."""
    found = []
    for branch in waiting[0].branches if waiting else ():
        views = [_view(state, _key(branch)) for state in waiting]
        stays = [v for v in views if v is not None and v.outcome is False and branch.leaves == "return"]
        if branch.kind == "if" and len(stays) == len(waiting) and _main_function(waiting[0]) == branch.place.function:
            found.append((branch, stays))
    if len(found) != 1:
        return None
    branch, stays = found[0]
    sides = (Side(ranks=verdict.culprits), *_sides(stays, {v.rank: v.values for v in stays}))
    return Parting(branch=branch, text=branch.conditions[0].text, sides=sides, sure=False)


def _main_function(state: RankState) -> str:
    """Return the function in which a rank stands that the program's own module calls; empty if that is not known."""
    own = [frame.function for frame in state.stack if not is_library(frame.file)]
    own = own if own[:1] == ["<module>"] else own[::-1]
    return own[1] if len(own) > 1 and own[0] == "<module>" else ""


def _two_sides(known: dict[int, RankState], verdict: Verdict) -> tuple[list[int], list[int]]:
    """Return the ranks that the others wait for, and these; by their places if the verdict names no side."""
    culprits = [r for r in verdict.culprits if r in known]
    others = [r for r in verdict.waiting if r in known] or [r for r in known if culprits and r not in culprits]
    if culprits:
        return culprits, [r for r in others if r not in culprits]
    places: dict[object, list[int]] = {}
    for rank, state in known.items():
        places.setdefault(tuple((f.file, f.line) for f in state.stack if not is_library(f.file)), []).append(rank)
    if len(places) != 2:
        return [], []
    one, other = sorted(places.values(), key=len)
    return one, other


def _key(branch: Branch) -> _Key:
    return branch.place.file, branch.place.line


def _view(state: RankState, key: _Key) -> _View | None:
    """Return how a test went for a rank; None if the rank was not seen near it."""
    branch = next((b for b in state.branches if _key(b) == key), None)
    if branch is None or state.rank is None:
        return None
    here = [
        f.line for f in state.stack if (f.file, f.function) == (branch.place.file, branch.place.function or "<module>")
    ]
    told = branch.conditions[0] if branch.conditions else None
    values = told.values if told is not None else ()
    if branch.kind == "for":
        return _View(state.rank, branch, branch.passes, any(_is_within(line, branch.held) for line in here), values)
    outcome = told.result if told is not None else None
    held = any(_is_within(line, branch.held) for line in here)
    failed = any(_is_within(line, branch.failed) for line in here)
    if held is failed:
        return _View(state.rank, branch, outcome, False, values if outcome is not None else ())
    return _View(state.rank, branch, held, True, values if outcome in {None, held} else ())


def _is_within(line: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(first <= line <= last for first, last in spans)


def _score(one: Sequence[_View], other: Sequence[_View]) -> tuple[int, ...] | None:
    """Return how firmly a test separates two sides; None if it does not."""
    ways, different = {v.outcome for v in one}, {v.outcome for v in other}
    if len(ways) != 1 or len(different) != 1 or ways == different or None in ways | different:
        return None
    stands = any(v.stands for v in one) + any(v.stands for v in other)
    if not stands:
        return None
    comparable = _comparable(one, other)
    if comparable is False and _part(one, other) is None:
        return None
    shown = bool(one[0].values) and bool(other[0].values)
    return comparable is not None, stands, shown, one[0].branch.kind != "for"


def _by_other_calls(one: Sequence[_View], other: Sequence[_View]) -> tuple[list[_View], list[_View]]:
    """Return two sides of which one stands behind a test, and the other passed it in the same pass of the loops.

    What is behind the test may have changed its operands since, so that they do not say how it went for the second:
    another way, or its calls would be the same.
    """
    for behind, past in ((one, other), (other, one)):
        ways = {v.outcome for v in behind}
        if len(ways) != 1 or not all(v.stands and v.branch.kind == "if" for v in behind) or not past:
            continue
        if all(v.outcome is None and not v.stands for v in past) and _comparable(one, other):
            went = [v._replace(outcome=not behind[0].outcome, values=v.branch.conditions[0].values) for v in past]
            return ([*behind], went) if behind is one else (went, [*behind])
    return [], []


def _comparable(one: Sequence[_View], other: Sequence[_View]) -> bool | None:
    """True if two sides were at a test in the same pass, or no pass changes it; None if that is unknown."""
    if one[0].branch.kind == "for" or all(v.branch.conditions[0].fixed for v in (*one, *other)):
        return True
    turns = {v.branch.turn for v in (*one, *other)}
    if any(not t.text for turn in turns for t in turn):
        known = {tuple(t.text for t in turn if t.text) for turn in turns}
        return None if len(known) == 1 else False
    return len(turns) == 1


def _parting(one: Sequence[_View], other: Sequence[_View], verdict: Verdict) -> Parting:
    branch = one[0].branch
    inside, apart = all(v.stands for v in one), any(v.stands for v in other)
    text, place = (branch.conditions[0].text if branch.conditions else branch.place.code), branch.place
    values = {v.rank: v.values for v in (*one, *other)}
    if branch.kind != "for" and (part := _part(one, other)) is not None:
        n, text = part
        values = {v.rank: v.branch.conditions[n].values for v in (*one, *other)}
        at = place.code.find(text)
        place = replace(place, mark=(at, at + len(text)) if at >= 0 else place.mark)
    links = branch.links or other[0].branch.links
    return Parting(
        branch=replace(branch, links=links, place=place),
        text=text,
        sides=(*_sides(one, values), *_sides(other, values)),
        sure=_comparable(one, other) is not None and not any(_is_inferred(v) for v in (*one, *other)),
        detour=verdict.kind == "not_arrived" and branch.kind != "for" and inside and not apart,
    )


def _is_inferred(view: _View) -> bool:
    """True if neither place nor values of the rank say how the test went."""
    known = view.branch.conditions[0].result if view.branch.conditions else None
    return view.branch.kind == "if" and known is None and not view.stands


def _part(one: Sequence[_View], other: Sequence[_View]) -> tuple[int, str] | None:
    """Return number and text of the only part of a test that differs, by what no pass of a loop changes if so."""
    first, second = one[0].branch.conditions, other[0].branch.conditions
    rows = [
        (n, a)
        for n, (a, b) in enumerate(zip(first, second, strict=False))
        if n and None not in {a.result, b.result} and a.result != b.result
    ]
    fixed = [(n, a) for n, a in rows if a.fixed]
    rows = fixed if _comparable(one, other) is False else fixed or rows
    return (rows[0][0], rows[0][1].text) if len(rows) == 1 else None


def _sides(views: Sequence[_View], values: dict[int, tuple[NamedValue, ...]]) -> Iterator[Side]:
    """Yield the ranks of one side, those with equal values together."""
    grouped: dict[tuple[object, ...], list[int]] = {}
    for v in views:
        grouped.setdefault((v.outcome, values[v.rank]), []).append(v.rank)
    for (outcome, shown), ranks in grouped.items():
        yield Side(ranks=tuple(sorted(ranks)), result=outcome, values=shown)  # type: ignore[arg-type]


def _way_around(
    known: dict[int, RankState], keys: Sequence[_Key], culprits: Sequence[int], others: Sequence[int], verdict: Verdict
) -> Parting | None:
    """Return the only test by which a rank can have gone around the others' place, if it did so in an earlier pass."""
    found: list[tuple[Sequence[int], list[_View]]] = []
    for gone, staying in ((culprits, others), (others, culprits)):
        for key in keys:
            stays = [v for r in staying if (v := _view(known[r], key)) is not None]
            went = [v for r in gone if (v := _view(known[r], key)) is not None]
            around = bool(stays) and stays[0].branch.leaves in _AROUND and stays[0].branch.kind == "if"
            if not around or not all(v.outcome is False for v in stays) or not any(v.stands for v in stays):
                continue
            skipped = verdict.kind == "skipped" and gone is culprits and _has_made_all_passes(went, stays)
            if skipped or all(v.outcome is None for v in went):
                found.append((gone, stays))
    if len(found) != 1 or _loops_differ(known, keys):
        return None
    gone, stays = found[0]
    branch = stays[0].branch
    values = {v.rank: v.values for v in stays}
    sides = (Side(ranks=tuple(sorted(gone))), *_sides(stays, values))
    return Parting(branch=branch, text=branch.conditions[0].text, sides=sides, sure=False)


def _has_made_all_passes(went: Sequence[_View], stays: Sequence[_View]) -> bool:
    """True if ranks are behind a loop after the very pass in which the others wait: they left out an earlier call."""
    turns = {v.branch.turn for v in (*went, *stays)}
    past = bool(went) and all(v.branch.leaves == "continue" and not v.stands for v in went)
    return past and len(turns) == 1 and all(t.text for t in next(iter(turns)))


def _loops_differ(known: dict[int, RankState], keys: Sequence[_Key]) -> bool:
    for key in keys:
        passes = {v.outcome for s in known.values() if (v := _view(s, key)) is not None and v.branch.kind == "for"}
        if len(passes - {None}) > 1:
            return True
    return False
