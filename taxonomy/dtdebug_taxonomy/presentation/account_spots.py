"""The places of an account as a front end shows them: the line that raised, and the line that decided the value."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dtdebug_taxonomy.explanations.account import deciding_line
from dtdebug_taxonomy.explanations.parting import decided_at
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.model.account import Account, NamedValue, Parting, Place
from dtdebug_taxonomy.model.answer import Spot
from dtdebug_taxonomy.text.pattern_matcher import plain

_MOST = 4
"""Maximum number of values at a line."""


def spots_of(account: Account) -> tuple[Spot, ...]:
    """Return the line that raised with what was refused there, then the line at which the value was decided."""
    place = account.place
    if place is None:
        return ()
    if account.exception and role_of(account.exception) == "launcher":  # the ranks' own exceptions say what happened
        return (_spot(place, () if account.rank is None else (account.rank,), "", ()),)
    ranks = () if account.rank is None else (account.rank,)
    state = f"raised {plain(account.exception, 120)}" if account.exception else ""
    spots = [_spot(place, ranks, state, _refused(account) if account.with_values else ())]
    link = deciding_line(account)
    if link is not None:
        spots.append(_spot(link.place, ranks, "", (link.value,)))
    return tuple(spots)


def spots_of_all(accounts: Sequence[Account]) -> tuple[Spot, ...]:
    """Return the spots of several accounts, ranks with equal ones together."""
    grouped: dict[Spot, Spot] = {}
    for account in accounts:
        for spot in spots_of(account):
            key = replace(spot, ranks=(), state="")  # messages may hold addresses; values tell ranks apart
            first = grouped.setdefault(key, spot)
            grouped[key] = replace(first, ranks=tuple(sorted({*first.ranks, *spot.ranks})))
    return tuple(grouped.values())


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
        values=tuple((plain(v.name), plain(v.text)) for v in values if v.text)[:_MOST],
    )


def _refused(account: Account) -> tuple[NamedValue, ...]:
    """Return the values at the raising line: those of the first links, in the user's names, else the arguments."""
    own = {link.value.name: link.value for link in account.links if link.depth == 0 and link.value.text}
    refusal = account.refusal
    given = {a.text: a for a in refusal.arguments if a.text} if refusal is not None else {}
    named = {value.text for value in own.values()}
    return (*own.values(), *(a for text, a in given.items() if text not in named))
