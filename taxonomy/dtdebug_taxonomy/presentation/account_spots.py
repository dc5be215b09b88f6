"""The places of an account as a front end shows them: the line that decided the value, and the line that raised."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.deciding_lines import deciding_line
from dtdebug_taxonomy.explanations.parting import decided_at
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.model.account import Account, NamedValue, Parting, Place
from dtdebug_taxonomy.model.answer import Spot
from dtdebug_taxonomy.model.rank_ranges import spell
from dtdebug_taxonomy.text.pattern_matcher import plain
from dtdebug_taxonomy.text.value_texts import read_value
from dtdebug_taxonomy.text.whole_parts import message_parts

_MOST, _LONG = 4, 40
"""Maximum number of values at a line; length of a container's text that is shown whole."""
_MESSAGE, _READ = 120, 400
"""Characters that are shown of an exception's message, of as many that are read."""

_OPAQUE = re.compile(r"<\w{1,80}>")
"""Text of an object of which only the class is known."""
Lead = tuple[str, int]
"""File and line that the answer's cause names."""


def spots_of(account: Account, lead: Lead = ("", 0)) -> tuple[Spot, ...]:
    """Return the line at which the value was decided, then the line that raised with what was refused there."""
    place = account.place
    if place is None:
        return ()
    if account.exception and role_of(account.exception) == "launcher":  # the ranks' own exceptions say what happened
        return (_spot(place, () if account.rank is None else (account.rank,), "", ()),)
    ranks = () if account.rank is None else (account.rank,)
    state = f"raised {message_parts(plain(account.exception, _READ), _MESSAGE)}" if account.exception else ""
    raised = _spot(place, ranks, state, _refused_values(account) if account.with_values else ())
    origin = origin_of(account, lead)
    return (origin, raised) if origin is not None else (raised,)


def origin_of(account: Account, lead: Lead = ("", 0)) -> Spot | None:
    """Return the line that the cause names, if it lies on the way back, else the line that decided the value."""
    place = account.place
    named = (link for link in account.links if (link.place.file, link.place.line) == lead)
    link = next(named, None) if place is not None and (place.file, place.line) != lead else None
    link = link or deciding_line(account)
    ranks = () if account.rank is None else (account.rank,)
    if link is None:
        return None
    at = account.links.index(link)
    inner = list(takewhile(lambda each: each.depth > link.depth, account.links[at + 1 :]))
    operands = [each.value for each in inner if each.depth == link.depth + 1 and not _OPAQUE.fullmatch(each.value.text)]
    return _spot(link.place, ranks, "", (link.value, *operands))


def spots_of_all(accounts: Sequence[Account], lead: Lead = ("", 0)) -> tuple[Spot, ...]:
    """Return the spots of several accounts, ranks with equal ones together, origins first."""
    grouped: dict[Spot, list[Spot]] = {}
    for account in accounts:
        for spot in spots_of(account, lead):
            key = replace(spot, ranks=(), state=spot.state[:1], values=())  # messages may hold addresses
            grouped.setdefault(key, []).append(spot)
    spots = sorted((_join_spots(same) for same in grouped.values()), key=lambda spot: bool(spot.state))
    shown: dict[tuple[int, ...], set[tuple[str, str]]] = {}
    return tuple(replace(s, values=_take_new(s.values, shown.setdefault(s.ranks, set()))) for s in spots)


def _take_new(values: Sequence[tuple[str, str]], shown: set[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the values that no earlier line of the same ranks shows, and note them as shown."""
    new = tuple(value for value in values if value not in shown)
    shown.update(new)
    return new


def _join_spots(spots: Sequence[Spot]) -> Spot:
    """Return one spot of several ranks at one place; a value that differs is told for each of them."""
    rows: dict[str, dict[str, list[int]]] = {}
    for spot in spots:
        for name, text in spot.values:
            rows.setdefault(name, {}).setdefault(text, []).extend(spot.ranks)
    values = tuple(
        (name, next(iter(texts)) if len(texts) == 1 else "; ".join(f"{t} on {spell(r)}" for t, r in texts.items()))
        for name, texts in rows.items()
    )
    ranks = tuple(sorted({rank for spot in spots for rank in spot.ranks}))
    return replace(spots[0], ranks=ranks, values=values[:_MOST])


def spots_of_parting(parting: Parting) -> tuple[Spot, ...]:
    """Return the test or loop at which ranks parted, then the line that gave the value which differs."""
    links = [link for link in (decided_at(parting),) if link is not None]
    return (_spot(parting.branch.place, (), "", ()), *(_spot(link.place, (), "", ()) for link in links))


def _spot(place: Place, ranks: tuple[int, ...], state: str, values: Sequence[NamedValue]) -> Spot:
    return Spot(
        ranks=ranks,
        file=place.file,
        line=place.line,
        code=plain(place.code),
        mark=place.mark,
        state=state,
        values=tuple((plain(v.name), plain(_brief(v.text))) for v in values if v.text)[:_MOST],
    )


def _brief(text: str) -> str:
    """Return the kind and length of a long container of numbers or strings: a few of its items tell nothing."""
    value = read_value(text) if len(text) > _LONG else None
    if value is None or not value.length or value.kind not in {"mapping", "sequence"}:
        return text
    return text if any(item.kind == "tensor" for item in value.items) else f"{value.name} of {value.length}"


def _refused_values(account: Account) -> tuple[NamedValue, ...]:
    """Return the values at the raising line: those of the first links, in the user's names, else the arguments."""
    own = {link.value.name: link.value for link in account.links if link.depth == 0 and link.value.text}
    refusal = account.refusal
    given = {a.text: a for a in refusal.arguments if a.text} if refusal is not None else {}
    named = {value.text for value in own.values()}
    shown = (*own.values(), *(a for text, a in given.items() if text not in named))
    return tuple(v for v in shown if not _OPAQUE.fullmatch(v.text)) or shown
