"""The places of an account as a front end shows them: the line that decided the value, and the line that raised."""

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
    state = f"raised {plain(account.exception, 120)}" if account.exception else ""
    raised = _spot(place, ranks, state, _refused(account) if account.with_values else ())
    origin = origin_of(account, lead)
    return (origin, raised) if origin is not None else (raised,)


def origin_of(account: Account, lead: Lead = ("", 0)) -> Spot | None:
    """Return the line that the cause names, if it lies on the way back, else the line that decided the value."""
    place = account.place
    named = (link for link in account.links if (link.place.file, link.place.line) == lead)
    link = next(named, None) if place is not None and (place.file, place.line) != lead else None
    link = link or deciding_line(account)
    ranks = () if account.rank is None else (account.rank,)
    return _spot(link.place, ranks, "", (link.value,)) if link is not None else None


def spots_of_all(accounts: Sequence[Account], lead: Lead = ("", 0)) -> tuple[Spot, ...]:
    """Return the spots of several accounts, ranks with equal ones together, origins first."""
    grouped: dict[Spot, Spot] = {}
    for account in accounts:
        for spot in spots_of(account, lead):
            key = replace(spot, ranks=(), state="")  # messages may hold addresses; values tell ranks apart
            first = grouped.setdefault(key, spot)
            grouped[key] = replace(first, ranks=tuple(sorted({*first.ranks, *spot.ranks})))
    return tuple(sorted(grouped.values(), key=lambda spot: bool(spot.state)))


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
