"""Judges observed ranks: how each ended, what the records show, and the resulting verdict.

Terminal, notebook and panel all use this, so that they give the same answer on one job.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.live.job import first_death, reconcile
from dtdebug.live.job.failed_threads import with_failed_child
from dtdebug.live.job.proof import limit_to_proof, with_time_out
from dtdebug.live.probe.liveness import Death
from dtdebug.recorded.flight_recorder import Analysis, FlightError, analyse
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState, Verdict
from dtdebug_taxonomy.model.ranks_view import Timeline


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """Input of a verdict besides the states."""

    output: str = ""
    """Output of the job."""
    earlier: Verdict | None = None
    """Verdict of the records while the ranks still were where they are observed."""
    measured: bool = False
    """True if that verdict was found after no rank made progress for the user's limit."""
    moving: bool | None = None
    """True if the ranks still moved then; None if not watched."""
    progress: Mapping[int, str] = {}
    """Progress of each rank between two observations."""
    seconds: float = 0.0
    """Seconds without progress of any rank, if watched."""
    deaths: Sequence[Death] = ()
    starved: Collection[int] = ()
    starvations: int = 0
    silent: Collection[int] = ()
    """See `ends.ends`."""
    since: float = 0.0
    """End of the job's attempt before."""


class Judgement(NamedTuple):
    """Result of judging observed states."""

    verdict: Verdict
    ended: first_death.Ends
    missing: tuple[int, ...] = ()
    """Ranks without a dump."""
    notes: tuple[str, ...] = ()
    """Notes of the records; those of the ends are in `ended`."""
    timeline: Timeline | None = None
    """Latest collectives, if requested."""
    is_earlier: bool = False
    """True if the earlier verdict holds: how the ranks ended explains nothing more."""


def judge(folder: RunFolder | None, states: Sequence[RankState], basis: Basis, *, timeline: bool = False) -> Judgement:
    """Return the verdict on observed states, with the records of the run and the ends of its ranks."""
    ended = first_death.ends(
        basis.output,
        states,
        basis.deaths,
        starved=basis.starved,
        starvations=basis.starvations,
        silent=basis.silent,
    )
    found, notes = analyse_records(folder, ended.states, moving=basis.moving, since=basis.since, timeline=timeline)
    verdict = first_death.settle(found.verdict if found else None, ended, basis.earlier, measured=basis.measured)
    before = [first_death.undo_interrupt(state) for state in ended.states]
    is_earlier = verdict is not None and verdict is basis.earlier
    if verdict is None or not is_earlier:  # otherwise the states of that time were used
        verdict = reconcile.reconcile_verdict(
            verdict, reconcile.TwoLooks(before, basis.progress, basis.moving, basis.seconds)
        )
        verdict = with_failed_child(verdict, before, ended.children)
    if is_earlier and basis.measured:
        verdict = with_time_out(verdict, before)
    else:
        awaits = found.awaits if found is not None else {}
        verdict = limit_to_proof(verdict, before, awaits, basis.progress, moving=basis.moving)
    missing, shown = (found.missing_dumps, found.timeline) if found is not None else ((), None)
    return Judgement(verdict, ended, missing, notes, shown, is_earlier)


def analyse_records(
    folder: RunFolder | None,
    states: Sequence[RankState],
    *,
    moving: bool | None = None,
    since: float = 0.0,
    timeline: bool = False,
) -> tuple[Analysis | None, tuple[str, ...]]:
    """Return the analysis of the records, with its notes; a defect in it leaves only the ends of the ranks."""
    seen = [first_death.undo_interrupt(state) for state in states]
    try:
        if folder is not None and folder.flight.is_dir():
            found = analyse(folder.flight, states=seen, moving=moving, since=since, timeline=timeline)
        else:
            with tempfile.TemporaryDirectory() as empty:
                found = analyse(Path(empty), states=seen, moving=moving, timeline=timeline)
    except FlightError:  # neither dumps nor records
        return None, ()
    except Exception as error:
        return None, (f"the flight records could not be analysed ({type(error).__name__}: {error})",)
    return found, found.notes
