"""What hosts saw of their own ranks, put together on the one that reports."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.hosts.presence import HostView, Presence
from dtdebug.job.looking import Look, merged
from dtdebug.probe.watch import Death

_AT_END, _AT_HANG = 8.0, 10.0
"""Seconds for which the other hosts are waited for: they see a hang at about the same time."""


class Pool(NamedTuple):
    """All that was seen."""

    look: Look
    deaths: list[Death]
    starved: set[int]


def shared(
    presence: Presence, look: Look, deaths: Sequence[Death], starved: Collection[int] = (), *, final: bool
) -> Pool | None:
    """What all hosts saw, where this one reports; None where another one does, for which this one's is left."""
    presence.contribute(
        HostView(
            final=final, states=look.states, deaths=tuple(deaths), starved=tuple(starved), progress=dict(look.progress)
        )
    )
    if presence.reporter():
        return None
    others = presence.gather(_AT_END if final else _AT_HANG, final=final) if presence.others else {}
    return pooled(look, deaths, starved, others.values())


def pooled(look: Look, deaths: Sequence[Death], starved: Collection[int], others: Iterable[HostView]) -> Pool:
    """A look completed by what other hosts saw of their ranks: each knows its own best."""
    states, progress, ended, killed = look.states, dict(look.progress), list(deaths), set(starved)
    for seen in others:
        theirs = {(s.host, s.pid) for s in seen.states}
        mine = [s for s in states if (s.host, s.pid) in theirs]
        rest = [s for s in states if (s.host, s.pid) not in theirs]
        known = {s.rank for s in seen.states if s.rank is not None}
        rest = [s for s in rest if s.pid is not None or s.rank not in known]
        states = (*rest, *merged(mine, seen.states))
        progress |= seen.progress
        ended += seen.deaths
        killed |= set(seen.starved)
    ordered = tuple(sorted(states, key=lambda s: (s.rank is None, s.rank or 0, s.pid or 0)))
    return Pool(
        msgspec.structs.replace(look, states=ordered, progress=progress),
        sorted(ended, key=lambda death: death.time),
        killed,
    )
