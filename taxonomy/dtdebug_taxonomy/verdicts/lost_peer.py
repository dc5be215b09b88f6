"""Verdict on a log that contains only ranks that waited for, or lost, a rank of which nothing is printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exits import LAUNCHER, Exit
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import CallSite, Verdict, spell

_TIMED_OUT = re.compile(r"(?i)timed? ?out")
_SHOWN, _PLACES = 8, 4
_UNEXPLAINED = "; the log does not show why"


def only_lost(
    echoes: Sequence[PrintedException], claims: Sequence[Claim], sites: Sequence[CallSite], ends: Sequence[Exit]
) -> Verdict | None:
    """Return the verdict if all exceptions are echoes; None if none of them has a known rank."""
    ranks = tuple(sorted({r.rank for r in echoes if r.rank is not None}))
    if not ranks:
        return None
    late = all(_TIMED_OUT.search(r.text) for r in echoes)
    places: dict[str, list[int]] = {}
    for site in sites:
        places.setdefault(called_at(site), []).append(site.rank)
    apart = "; ".join(f"{spell(those, _SHOWN)}{place}" for place, those in [*places.items()][:_PLACES])
    where = next(iter(places), "") if len(places) < 2 else f", each at its own place ({apart})"
    did = "timed out waiting for another rank" if late else "lost the connection to another rank"
    ended = tuple(sorted({e.rank for e in ends if e.rank is not None and e.signal in LAUNCHER and e.signal} - {*ranks}))
    still = f"; {spell(ended, _SHOWN)} ran on until the launcher ended {'it' if len(ended) == 1 else 'them'}"
    return Verdict(
        kind="not_understood",
        waiting=ranks,
        sites=tuple(site for site in sites if site.rank in ranks),
        summary=f"{spell(ranks, _SHOWN).capitalize()} {did}{where}{_UNEXPLAINED}{still if ended else ''}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def called_at(site: CallSite) -> str:
    """Return ` at train.py:12 in main`; a syntax error has no function."""
    return f" at {site.file}:{site.line}{f' in {site.function}' if site.function else ''}" if site.file else ""


def of_explained(text: str) -> str:
    """Return what happened without the words that nothing shows why, if the cause is known."""
    return text.replace(_UNEXPLAINED, "")
