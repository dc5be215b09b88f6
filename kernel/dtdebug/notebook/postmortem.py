"""Finds which rank of a failed cell failed first, and where, from the files that the ranks left."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from dtdebug_taxonomy.model.ranks import PROCESS, RankState, Verdict
from dtdebug_taxonomy.model.snapshot import ExceptionInfo, Snapshot, walk
from dtdebug_taxonomy.stacks.frames import own_frames

if TYPE_CHECKING:
    from dtdebug.notebook.ended_children import EndedChild
    from dtdebug.notebook.live_kernel import Live
    from dtdebug.storage.run_folder import RunFolder

_LAUNCHERS = frozenset({"ProcessRaisedException", "ProcessExitedException", "ChildFailedError"})
"""Exceptions that torch's launchers raise in the notebook after they have ended the other ranks."""
_ENDING = re.compile(r"(?m)^.{0,200}torch/multiprocessing/spawn\.py:\d{1,6}\] Terminating process .{0,80}\n?")
"""Line that a launcher prints about ending ranks; not an error of launching."""


def add_ranks(live: Live, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the ended ranks and the verdict on them, or unchanged if they add nothing."""
    told = {info.rank: info for info in [*walk(snapshot.exception)][::-1] if info.rank is not None}
    if live.run is None or not (told or live.has_ranks):
        return snapshot
    if _is_interrupt(snapshot.exception):
        return _interrupted(live, live.run, snapshot)
    from dtdebug.live.job.first_death import standing
    from dtdebug.live.job.observe import merge_states
    from dtdebug.live.job.rank_accounts import add_crash_stacks
    from dtdebug.notebook.observe_ranks import conclude

    states = _states(live.run, live.since, told, launched=_is_of_launcher(snapshot.exception))
    states = add_crash_stacks(live.run, _with_children(states, live.failed_children()))
    if not any(s.alive is False for s in states):
        return snapshot
    seen = live.seen if live.seen is not None and live.seen.verdict is not None else None
    if seen is not None:
        states = [*merge_states(seen.ranks, states)]
    measured = (
        seen.verdict if seen is not None and _is_hang(seen.verdict) and not _went_on(seen.ranks, states) else None
    )
    output = "\n".join((snapshot.output, *(info.message for info in walk(snapshot.exception))))
    found = conclude(live.run, states, output, earlier=measured)
    verdict = found.verdict
    snapshot = _add_accounts(live, snapshot, states, verdict)
    states = [msgspec.structs.replace(s, accounts=(), branches=()) for s in states]
    if verdict is None or not (found.is_earlier or _is_hang(verdict)):
        return snapshot
    first = told.get(verdict.culprits[0]) if verdict.culprits else None
    ended = _ENDING.sub("", snapshot.output)
    if found.is_earlier and verdict.kind not in ("dead", "left"):  # how it ended does not explain why it hung
        stood = {s.rank: s for s in seen.ranks} if seen is not None else {}
        states, ended, first = [standing(stood.get(s.rank, s)) for s in states], "", None
        snapshot = msgspec.structs.replace(snapshot, exception=None)
    return msgspec.structs.replace(
        snapshot,
        output=ended,
        exception=first or snapshot.exception,  # the launcher's own text around it is about launching
        ranks=tuple(map(live.cells.rename_cells, states)),
        verdict=live.cells.rename_cells(verdict),
    )


def _is_interrupt(exception: ExceptionInfo | None) -> bool:
    """True for what torch's elastic agent makes of the interrupt of a cell, once it has ended its ranks."""
    return exception is not None and exception.type.endswith("SignalException") and exception.message.endswith(": 2")


def _interrupted(live: Live, run: RunFolder, snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with where the ranks last stood: their ends are the user's doing."""
    from dtdebug.live.job.first_death import standing
    from dtdebug.live.job.rank_accounts import parting_of
    from dtdebug.live.probe.ask_all_ranks import one_each
    from dtdebug.notebook.observe_ranks import conclude
    from dtdebug.storage.untrusted import tidy

    states = [standing(s) for s in one_each(map(tidy, run.records()))]
    seen, verdict = live.seen, conclude(run, states, "").verdict
    if seen is not None and _is_hang(seen.verdict) and {s.pid for s in seen.ranks} & {s.pid for s in states}:
        states, verdict = [*seen.ranks], seen.verdict
    if not any(s.stack for s in states):
        return snapshot
    verdict = verdict if _is_hang(verdict) else None  # one look at each shows where it stood, not that it hung
    return msgspec.structs.replace(
        snapshot,
        output="",
        exception=None,
        ranks=tuple(map(live.cells.rename_cells, states)),
        verdict=live.cells.rename_cells(verdict),
        parting=live.cells.rename_cells(parting_of(states, verdict)) if verdict is not None else None,
    )


def _add_accounts(live: Live, snapshot: Snapshot, states: Sequence[RankState], verdict: Verdict | None) -> Snapshot:
    """Add what the ranks recorded of their values; a launcher's exception has none of them."""
    from dtdebug.account.sources import live_lines
    from dtdebug.live.job.rank_accounts import accounts_of, parting_of, standing_accounts
    from dtdebug_taxonomy.inference.ranks_apart import with_partings

    told = accounts_of(states, verdict)
    parting = None
    if verdict is not None:
        told = with_partings((*told, *standing_accounts(verdict, states, told, live_lines)), verdict)
        parting = live.cells.rename_cells(parting_of(states, verdict))
    told = tuple(map(live.cells.rename_cells, told)) or snapshot.accounts
    return msgspec.structs.replace(snapshot, accounts=told, parting=parting)


def _is_hang(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.kind not in ("none", "not_understood")


def _went_on(before: Iterable[RankState], after: Iterable[RankState]) -> bool:
    """True if a rank has started an operation since the hang was observed."""
    counts = {(s.rank, g.name): g.enqueued for s in before for g in s.groups}
    pairs = ((counts.get((s.rank, g.name)), g.enqueued) for s in after for g in s.groups)
    return any(early is not None and late is not None and late > early for early, late in pairs)


def _states(run: RunFolder, since: float, told: Mapping[int, ExceptionInfo], *, launched: bool) -> list[RankState]:
    """Return the ranks of the cell's job from their records and from the launcher's exception."""
    from dtdebug.live.job.observe import mark_ended
    from dtdebug.live.probe.ask_all_ranks import one_each
    from dtdebug.live.probe.processes import liveness, ranks_below
    from dtdebug.notebook.observe_ranks import forget_earlier
    from dtdebug.storage.untrusted import tidy

    forget_earlier(run, ranks_below(os.getpid()), since)
    records = one_each(map(tidy, run.records()))
    states = [mark_ended(s) if s.pid and liveness(s.pid, s.time) == "ended" else s for s in records]
    known = {s.rank for s in states}
    states += [RankState(rank=rank, alive=False) for rank in told if rank not in known]  # ended before its first record
    return [_complete_state(s, told.get(-1 if s.rank is None else s.rank), launched=launched) for s in states]


def _with_children(states: list[RankState], children: Sequence[EndedChild]) -> list[RankState]:
    """Add how processes of multiprocessing ended; the one rank without a record is the one child without a record."""
    ends = {child.pid: child for child in children}
    for i, state in enumerate(states):
        child = ends.pop(state.pid or 0, None)
        if child is not None and state.exit_code in (None, 0) and not state.signal:
            states[i] = _with_end(state, child)
    missing = {*range(max((s.world_size or 0 for s in states), default=0))} - {s.rank for s in states}
    if len(missing) == len(ends) == 1:
        [rank], [child] = missing, ends.values()
        states.append(_with_end(RankState(rank=rank, pid=child.pid, facts={PROCESS: child.name}), child))
    return states


def _with_end(state: RankState, child: EndedChild) -> RankState:
    code = None if child.signal else child.status
    return msgspec.structs.replace(state, alive=False, exit_code=code, signal=child.signal)


def _complete_state(state: RankState, info: ExceptionInfo | None, *, launched: bool) -> RankState:
    """Add the place of the exception; a rank without a final record was ended by the launcher."""
    if state.alive is not False or state.exception:
        return state
    if info is not None and not _is_of_launcher(info):  # the launcher's own frames are the notebook's
        return msgspec.structs.replace(state, stack=state.stack or own_frames(info.frames))
    if info is not None:
        return state
    return msgspec.structs.replace(state, signal=state.signal or "SIGTERM") if launched else state


def _is_of_launcher(exception: ExceptionInfo | None) -> bool:
    return any(info.type.rpartition(".")[2] in _LAUNCHERS for info in walk(exception))
