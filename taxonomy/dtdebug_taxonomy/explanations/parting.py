"""Explains a hang by the test or loop at which the ranks parted, with its values on each side.

It says what a rank's place and values show: which way the test went, not that the program should not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.explanations import ordinary_errors, parting_edits
from dtdebug_taxonomy.explanations.account_words import where
from dtdebug_taxonomy.explanations.context import Context
from dtdebug_taxonomy.explanations.model import Explanation, Reason, explanation_for, with_diff
from dtdebug_taxonomy.inference.parting import is_by_rank
from dtdebug_taxonomy.model.account import Link, NamedValue, Parting, Side
from dtdebug_taxonomy.model.rank_ranges import ranges
from dtdebug_taxonomy.model.ranks import Verdict
from dtdebug_taxonomy.text.pattern_matcher import plain

EVIDENCE = "ranks-part-at-a-test"
_SYMPTOM = "D.2.1"
_SURE, _LIKELY = 0.9, 0.7
_MOST_SIDES, _MOST_VALUES, _LONGEST_VALUES, _LONGEST_SIDES = 3, 2, 40, 80
_DIGITS = re.compile(r"\b\d{1,20}\.\d{4,20}(?:e[+-]?\d{1,3})?\b")
_DECIDED = frozenset({"literal", "option", "default", "environment", "file", "assigned", "returned", "attribute"})
_RANK = re.compile(r"(?i)\b(?:\w{1,20}_)?rank\b")
_BETWEEN_TWO = frozenset({"send", "recv", "isend", "irecv", "batch_isend_irecv"})
_PATH = re.compile(r"^(?:Path\()?['\"].*[./]")


def explain(context: Context) -> Iterator[Explanation]:
    """Yield the test or loop at which the ranks that a verdict tells apart went different ways."""
    snapshot = context.incident.snapshot
    parting = snapshot.parting
    if parting is None or not parting.sides:
        return
    if parting.branch.kind == "try" and any(ordinary_errors.explain(context)):
        return  # what was caught was printed, and says more
    verdict = snapshot.verdict
    if verdict is not None and verdict.collective and verdict.collective.op in _BETWEEN_TWO:
        mutual = [*_between_two(context, parting, verdict)]
        yield from mutual
        if mutual or is_by_rank(parting):
            return  # one rank is to send where another receives
    if parting.branch.leaves == "raise" and _has_exception_of(verdict, parting.sides[0].ranks):
        return  # the exception is what happened, and the test is its reason
    if is_by_rank(parting) and _in_other_groups(verdict):
        return  # each rank's way leads to a collective, and no test is to be dropped
    place = parting.branch.place
    meant = parting.detour and is_by_rank(parting)  # where it stands is sure; that it should not be there is not
    reason = Reason(
        evidence=EVIDENCE,
        means="The values at the test where the ranks part.",
        of_account=True,
        source="measured" if parting.sure and not meant else "checked",
        weight=2.5,
        line=place.line,
        words=place.code,
        rank=parting.sides[0].ranks[0] if parting.sides[0].ranks else None,
        file=place.file,
    )
    link = decided_at(parting)
    of_role = is_by_rank(parting) or (link is not None and bool(_RANK.search(link.place.code)))
    unproven = parting.detour or parting.branch.kind == "try"
    edit = None if unproven else parting_edits.edit_of(parting, snapshot, of_role=of_role)
    polled = _name_polled_file(parting) if parting.detour else None
    title, advice = polled if polled is not None else (_title(parting), _fix(parting))
    found = explanation_for(
        _SYMPTOM,
        plain(title, 500),
        _why(parting),
        plain(advice, 500),
        _SURE if parting.sure and not meant else _LIKELY,
        reason,
    )
    at = edit.place if edit is not None else place
    diff = edit.diff if edit is not None else ""
    fix = edit.says if edit is not None else found.fix
    yield with_diff(replace(found, fix=fix), diff, file=at.file, line=at.line)


def _between_two(context: Context, parting: Parting, verdict: Verdict) -> Iterator[Explanation]:
    """Yield two ranks that wait for each other in one call, and what sent both the same way."""
    waits = {c.ranks[0]: c for c in verdict.claims if c.what == "waits" and len(c.ranks) == len(c.of) == 1}
    pair = next((r for r, c in waits.items() if (o := waits.get(c.of[0])) and o.of == (r,) and o.op == c.op), None)
    if pair is None:
        return
    call = waits[pair]
    both = tuple(sorted((pair, call.of[0])))
    side = next((s for s in parting.sides if {*both} <= {*s.ranks} and s.result is not None), None)
    link = decided_at(parting)
    place = link.place if link is not None else parting.branch.place
    title = f"Ranks {both[0]} and {both[1]} both wait in {call.op} for the other"
    if side is not None:
        title += f": `{parting.text}` is {side.result} on both ({where(place)})"
    other = "receive" if "send" in call.op else "send"
    fix = f"Edit {where(place)}: let one rank of each pair {other} first, by what differs between the two."
    reason = Reason(
        evidence=EVIDENCE,
        means="The calls in which the two ranks wait.",
        of_account=True,
        source="measured",
        weight=2.5,
        line=place.line,
        words=place.code,
        rank=both[0],
        file=place.file,
    )
    found = explanation_for(_SYMPTOM, plain(title, 500), "Neither call can end before the other.", fix, _SURE, reason)
    yield replace(found, file=place.file, line=place.line)


def _name_polled_file(parting: Parting) -> tuple[str, str] | None:
    """Return the title and fix of a rank that waits in a loop for a file, where the program writes one of that name."""
    loop = parting.polls
    writer = next((link for link in loop.links if link.how == "file"), None) if loop is not None else None
    paths = [v for c in loop.conditions for v in c.values if _PATH.search(v.text)] if loop is not None else []
    if loop is None or writer is None or not paths:
        return None
    who = _ranks(parting.sides[0].ranks)
    title = (
        f"{who[:1].upper()}{who[1:]} waits in {where(loop.place)} for `{paths[0].name}`, {paths[0].text}, which is not "
        f"there; {where(writer.place)} writes `{writer.value.name}`"
    )
    return title, f"Write and wait for one path: compare {where(writer.place)} with {where(loop.place)}."


def _has_exception_of(verdict: Verdict | None, ranks: Sequence[int]) -> bool:
    """True if a verdict has an exception of one of these ranks."""
    return verdict is not None and any(c.what == "raised" and {*c.ranks} & {*ranks} for c in verdict.claims)


def _in_other_groups(verdict: Verdict | None) -> bool:
    """True if ranks that wait for each other have called collectives of different groups."""
    calls = [claim for claim in verdict.claims if claim.what == "called"] if verdict is not None else []
    return verdict is not None and verdict.kind == "replaced" and len({claim.group for claim in calls}) > 1


def decided_at(parting: Parting) -> Link | None:
    """Return the line that gave the value which differs, if it is another than the test's."""
    place = parting.branch.place
    own = [link for link in parting.branch.links if (link.place.file, link.place.line) != (place.file, place.line)]
    differing = {v.name for v in _differing(parting.sides)}
    if parting.branch.kind != "for" and own and own[0].how == "returned" and own[0].value.name in parting.text:
        return own[0]
    first = next((link for link in own if link.value.name in differing and link.how in _DECIDED), None)
    if parting.branch.kind != "for":
        return first
    shards = next((link for link in own if parting_edits.sharded(link.place.code)), None)
    return shards or first or next((link for link in own if link.how in _DECIDED), None)


def _title(parting: Parting) -> str:
    at = where(parting.branch.place)
    sides = parting.sides[:_MOST_SIDES]
    if parting.detour:
        who = " and ".join(_ranks(side.ranks) for side in sides if side.result is sides[0].result)
        way = "took the `else` of" if sides[0].result is False else "went into"
        return f"{who[:1].upper()}{who[1:]} {way} `{parting.branch.place.code}` ({at}) and has not come back"
    if parting.branch.kind == "try":
        who = _ranks(parting.sides[0].ranks)
        first, last = parting.branch.held[0] if parting.branch.held else (0, 0)
        lines = f"line {first}" if first == last else f"lines {first}-{last}"
        way = _WAYS.get(parting.branch.leaves, "continues")
        return f"An exception in {lines} can have taken {who} around `{parting.text}`: {at} catches it and {way}"
    passing = sorted({rank for side in parting.sides if side.result is True for rank in side.ranks})
    if is_by_rank(parting) and passing and {side.result for side in parting.sides} == {True, False}:
        return f"Only {_ranks(passing)} pass{'es' * (len(passing) == 1)} `{parting.text}` ({at})"
    unknown = next((side for side in sides if side.result is None), None)
    differing = {v.name for v in _differing(sides)}
    known = [side for side in sides if side.result is not None]
    ways = [f"{_outcome(parting, side)} on {_ranks(side.ranks)}" for side in known]
    shown = ", ".join(f"{way}{_values(side, differing)}" for way, side in zip(ways, known, strict=True))
    if parting.branch.kind == "for" and len(shown) > _LONGEST_SIDES:
        shown = ", ".join(ways)  # what a loop goes over says no more than its passes
    elif unknown is not None and len({side.result for side in known}) == 1:
        shown = f"{_outcome(parting, known[0])} on {_ranks(sorted(rank for side in known for rank in side.ranks))}"
    if unknown is not None:
        way = "went around its peers' call" if parting.branch.leaves == "continue" else "left"
        who = _ranks(unknown.ranks)
        return f"{who[:1].upper()}{who[1:]} {way}, and only `{parting.text}` ({at}) leads there: it is {shown}"
    link = decided_at(parting)
    said = f"; decided at {where(link.place)}" if link is not None else ""
    return f"`{parting.text}` {'has' if parting.branch.kind == 'for' else 'is'} {shown} ({at}){said}"


_WAYS = {"continue": "goes to the next pass", "break": "leaves the loop", "return": "returns"}
"""Statement with which an `except` ends -> phrase."""


def _outcome(parting: Parting, side: Side) -> str:
    if parting.branch.kind == "for":
        return f"{side.result} pass{'es' * (side.result != 1)}"
    return str(side.result)


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {ranges(ranks)}"


def _values(side: Side, differing: set[str]) -> str:
    rows = [v for v in side.values if v.name in differing]
    text = ""
    for v in rows[:_MOST_VALUES]:
        more = f"{text}{', ' if text else ''}{v.name} = {_short(v.text)}"
        text = more if not text or len(more) <= _LONGEST_VALUES else text
    return f" ({text})" if text else ""


def _short(text: str) -> str:
    """Return a number with the digits that a reader compares."""
    return _DIGITS.sub(lambda found: f"{float(found[0]):.4g}", text)


def _differing(sides: Sequence[Side]) -> list[NamedValue]:
    """Return the values of the first side that another one does not share, plain numbers and texts first."""
    others = [{v.name: v.text for v in side.values} for side in sides[1:]]
    rows = [v for v in sides[0].values if any(v.name in each and each[v.name] != v.text for each in others)]
    return [v for v in rows if v.text not in {"True", "False"}] or rows


def _why(parting: Parting) -> str:
    if parting.detour:
        return "The others went around it and wait in a call that comes after."
    if parting.branch.kind == "try":
        if parting.branch.leaves:
            return "The others wait in a call that comes after this `try`, and the rank is past it."
        return "The others wait in a call inside this `try`, and the rank is past it."
    if parting.branch.kind == "for":
        return "Each pass calls a collective: the ranks with fewer passes leave the others waiting."
    if is_by_rank(parting):
        return "The test asks for the rank, and only one of its ways leads to a collective."
    return "Each rank decides by its own value, and only one of the ways leads to a collective."


def _fix(parting: Parting) -> str:
    at = where(parting.branch.place)
    if parting.detour:
        return f"Let what stands behind {at} end in time, or let all ranks do it between the same calls."
    if parting.branch.kind == "try":
        if parting.branch.leaves:
            return (
                f"Let a rank that comes to {at} make that call, too, with an empty share, or raise the exception again."
            )
        return f"Print the exception at {at} and raise it again, so that the rank ends there and the job with it."
    if parting.branch.kind == "for":
        link = decided_at(parting)
        return (
            f"Edit {where(link.place) if link is not None else at}, so that all ranks make equally many passes: drop"
            " the surplus, pad it, or put the loop into DDP's `Join`."
        )
    if is_by_rank(parting):
        passing = sorted({rank for side in parting.sides if side.result is True for rank in side.ranks})
        own = f", or give it a group of {_ranks(passing)} only" if len(passing) > 1 else ""
        return f"Let all ranks reach what communicates behind {at}{own}; guard only printing and writing by the rank."
    return f"Edit {at}: agree on the outcome, for example by `all_reduce` of it, so that all ranks go the same way."
