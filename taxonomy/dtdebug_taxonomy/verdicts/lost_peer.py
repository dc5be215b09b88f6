"""Verdict on a log that contains only ranks that waited for, or lost, a rank of which nothing is printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.exception_roles import role_of
from dtdebug_taxonomy.logs.exits import LAUNCHER
from dtdebug_taxonomy.logs.log import Log
from dtdebug_taxonomy.model.claims import Claim, texts
from dtdebug_taxonomy.model.ranks import CallSite, Verdict, spell
from dtdebug_taxonomy.verdicts.last_words import are_exception, last_line_claim, last_lines, telling_end

_TIMED_OUT = re.compile(r"(?i)timed? ?out")
_SHOWN, _PLACES = 8, 4
_SILENT = 0.5
"""Confidence of a verdict on ranks that report nothing."""
_UNEXPLAINED = "; the log does not show why"


def only_lost(
    log: Log, echoes: Sequence[PrintedException], claims: Sequence[Claim], sites: Sequence[CallSite]
) -> Verdict | None:
    """Return the verdict if all exceptions are echoes; None if none of them has a known rank.

    A rank that prints lines and no such exception is the one that the others wait for, or lost.
    """
    ends = log.said.exits
    ranks = tuple(sorted({r.rank for r in echoes if r.rank is not None}))
    if not ranks:
        return None
    late = all(_TIMED_OUT.search(r.text) for r in echoes)
    places: dict[str, list[int]] = {}
    for site in sites:
        places.setdefault(called_at(site), []).append(site.rank)
    apart = "; ".join(f"{spell(those, _SHOWN)}{place}" for place, those in [*places.items()][:_PLACES])
    where = next(iter(places), "") if len(places) < 2 else f", each at its own place ({apart})"
    silent = _silent_ranks(log, ranks)
    did = "timed out waiting for another rank" if late else "lost the connection to another rank"
    ended = tuple(sorted({e.rank for e in ends if e.rank is not None and e.signal in LAUNCHER and e.signal} - {*ranks}))
    if silent:
        alive = "ran on and " if {*silent} <= {*ended} else ""
        rows = last_lines(log, silent, min(r.begin for r in echoes))
        said = (*map(last_line_claim, rows), *claims)
        return Verdict(
            kind="not_arrived",
            culprits=silent,
            waiting=ranks,
            sites=tuple(site for site in sites if site.rank in ranks),
            confidence=_SILENT,
            summary=f"{spell(silent, _SHOWN).capitalize()} {alive}printed no {'time-out' if late else 'error'}"
            f"{telling_end(silent, rows)}. {spell(ranks, _SHOWN).capitalize()} {did}{where}.",
            claims=said,
            evidence=texts(said),
        )
    still = f"; {spell(ended, _SHOWN)} ran on until the launcher ended {'it' if len(ended) == 1 else 'them'}"
    return Verdict(
        kind="not_understood",
        waiting=ranks,
        sites=tuple(site for site in sites if site.rank in ranks),
        summary=f"{spell(ranks, _SHOWN).capitalize()} {did}{where}{_UNEXPLAINED}{still if ended else ''}.",
        claims=tuple(claims),
        evidence=texts(claims),
    )


def _silent_ranks(log: Log, ranks: Sequence[int]) -> tuple[int, ...]:
    """Return the ranks that print and did not raise, if they are the exception."""
    heard = {line.rank for line in log.lines if line.rank is not None} | {*log.around.printing}
    ended = {e.rank for e in log.said.exits if e.rank is not None and e.signal in LAUNCHER and e.signal}
    heard |= ended
    raised = {r.rank for r in log.events.raised if not _was_ended(r)} | {e.rank for e in log.said.exits} - ended
    raised |= {other for rank in ranks for other in log.around.alike.get(rank, ())}
    silent = tuple(sorted(heard - raised - {*ranks}))
    return silent if silent and are_exception(silent, ranks) else ()


def _was_ended(raised: PrintedException) -> bool:
    """True if the launcher ended its process: it has not failed by itself."""
    return role_of(raised.type, raised.frames) == "launcher"


def called_at(site: CallSite) -> str:
    """Return ` at train.py:12 in main`; a syntax error has no function."""
    return f" at {site.file}:{site.line}{f' in {site.function}' if site.function else ''}" if site.file else ""


def of_explained(text: str) -> str:
    """Return what happened without the words that nothing shows why, if the cause is known."""
    return text.replace(_UNEXPLAINED, "")
