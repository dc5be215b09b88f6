"""The one reading of ranks that were seen: how each ended, what the records say, and the verdict that follows.

Terminal, notebook and panel all ask here, so that they say the same of one job.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.flight import Analysis, FlightError, analyse
from dtdebug.job import ends, outcome
from dtdebug.job.within import with_failed_child
from dtdebug.probe.watch import Death
from dtdebug.records.folder import RunFolder
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.view import Timeline


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict is made from besides the states."""

    output: str = ""
    """What the job has printed."""
    earlier: Verdict | None = None
    """What the records said while the ranks still were where they are seen."""
    measured: bool = False
    """That verdict was found while no rank made progress for as long as the user's limit."""
    moving: bool | None = None
    """Whether the ranks still moved then, if somebody watched them."""
    progress: Mapping[int, str] = {}
    """Of each rank between two looks."""
    seconds: float = 0.0
    """For how long no rank has made progress, as far as somebody watched."""
    deaths: Sequence[Death] = ()
    starved: Collection[int] = ()
    starvations: int = 0
    silent: Collection[int] = ()
    """As in `ends.ends`."""


class Judgement(NamedTuple):
    """What follows from states that were seen."""

    verdict: Verdict
    ended: ends.Ends
    missing: tuple[int, ...] = ()
    """Ranks without a dump."""
    notes: tuple[str, ...] = ()
    """Of the records; those of the ends are with them."""
    timeline: Timeline | None = None
    """The latest collectives, if they were asked for."""


def judge(folder: RunFolder | None, states: Sequence[RankState], basis: Basis, *, timeline: bool = False) -> Judgement:
    """The verdict on states that were seen, with the records of the run and the ends of its ranks."""
    ended = ends.ends(
        basis.output,
        states,
        basis.deaths,
        starved=basis.starved,
        starvations=basis.starvations,
        silent=basis.silent,
    )
    found, notes = recorded(folder, ended.states, moving=basis.moving, timeline=timeline)
    verdict = ends.settle(found.verdict if found else None, ended, basis.earlier, measured=basis.measured)
    if verdict is None or verdict is not basis.earlier:  # else it was judged by what was seen then
        before = [ends.uninterrupted(state) for state in ended.states]
        verdict = outcome.judged(verdict, outcome.TwoLooks(before, basis.progress, basis.moving, basis.seconds))
        verdict = with_failed_child(verdict, before, ended.children)
    return Judgement(
        verdict, ended, found.missing_dumps if found else (), notes, found.timeline if found is not None else None
    )


def recorded(
    folder: RunFolder | None, states: Sequence[RankState], *, moving: bool | None = None, timeline: bool = False
) -> tuple[Analysis | None, tuple[str, ...]]:
    """What the records say, with its notes; a defect in their analysis leaves what the ends of the ranks tell."""
    seen = [ends.uninterrupted(state) for state in states]
    try:
        if folder is not None and folder.flight.is_dir():
            found = analyse(folder.flight, states=seen, moving=moving, timeline=timeline)
        else:
            with tempfile.TemporaryDirectory() as empty:
                found = analyse(Path(empty), states=seen, moving=moving, timeline=timeline)
    except FlightError:  # neither dumps nor records: there is nothing to analyse
        return None, ()
    except Exception as error:
        return None, (f"the flight records could not be analysed ({type(error).__name__}: {error})",)
    return found, found.notes
