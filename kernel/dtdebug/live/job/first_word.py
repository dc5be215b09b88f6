"""The first word on a job in which nothing moves: who waits for whom, before a verdict, and true of a slow job too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtdebug.live.job.judge import analyse_records
from dtdebug.live.job.observe import ask_ranks
from dtdebug.storage.run_folder import RunFolder
from dtdebug_taxonomy.model.ranks import RankState, of_ranks, say
from dtdebug_taxonomy.stacks.activity import activity
from dtdebug_taxonomy.stacks.frames import own_frame, spell_place

AFTER = 15.0
"""Seconds without progress until it is said."""
_PATIENCE = 1.0
"""Seconds for the ranks to answer: their agents do in milliseconds."""
_CALLS = 3
"""Number of different calls that are shown."""
_AT_WORK = {
    "compiling": "compiles", "saving_checkpoint": "saves a checkpoint", "loading_checkpoint": "loads a checkpoint",
    "preparing_data": "prepares data", "downloading": "downloads", "evaluating": "evaluates", "importing": "imports",
}  # fmt: skip


def first_look(folder: RunFolder) -> tuple[RankState, ...]:
    """Return the living ranks as their agents answer at once."""
    states = ask_ranks(folder, twice=False, timeout=_PATIENCE).states
    return tuple(s for s in states if s.alive and s.rank is not None)


def first_word(folder: RunFolder, states: Sequence[RankState], seconds: float) -> str:
    """Return who is waited for, and since when; nothing if no rank waits for another one."""
    waiting = [s for s in states if s.pending is not None]
    if not waiting:
        return ""
    found, _ = analyse_records(folder, states)
    verdict = found.verdict if found is not None else None
    since = f"{seconds:.0f} s"
    behind = [s for s in of_ranks(states, verdict.culprits if verdict is not None else ()) if s not in waiting]
    if not behind and len(waiting) < len(states):
        behind = [s for s in states if s not in waiting]
    ranks = [s.rank for s in waiting if s.rank is not None]
    if not behind:
        return f"slow, or hanging: {_compare_calls(waiting)}; nothing moved for {since}"
    late = [s.rank for s in behind if s.rank is not None]
    return (
        f"slow, or hanging: {say(late, 'have')} not reached {_calls(waiting)}{_where(behind)}; "
        f"{say(ranks, 'wait')}, nothing moved for {since}"
    )


def _compare_calls(waiting: Sequence[RankState]) -> str:
    """Return the calls in which all ranks wait: only a call that is the same on each shows that none is behind."""
    calls: dict[tuple[str, int | None, str, tuple[int, ...]], list[int]] = {}
    for state in waiting:
        if state.pending is not None and state.rank is not None:
            p = state.pending
            members = next((tuple(g.ranks) for g in state.groups if g.name == p.group), ())
            calls.setdefault((p.op, p.seq, p.group, members), []).append(state.rank)
    ranks = [rank for same in calls.values() for rank in same]
    if len(calls) == 1:
        ((op, seq, _, _),) = calls
        world = max((s.world_size or 0) for s in waiting)
        if seq is not None and len(ranks) >= world > 0:
            return f"{say(ranks, 'wait')} in the same {op} #{seq}, none is behind"
        return f"{say(ranks, 'wait')} in {op}, who is behind is not known yet"
    shown = [
        f"{say(same, 'wait')} in {op}{'' if seq is None else f' #{seq}'}"
        for (op, seq, _, _), same in list(calls.items())[:_CALLS]
    ]
    more = "; ..." if len(calls) > _CALLS else ""
    return f"{'; '.join(shown)}{more}; who is behind is not known yet"


def _calls(states: Sequence[RankState]) -> str:
    """Return the call that most of them wait in."""
    ((op, _),) = Counter(s.pending.op for s in states if s.pending is not None).most_common(1)
    return op


def _where(states: Sequence[RankState]) -> str:
    """Return where the first of them is, and what it does there if its stack says so."""
    frame = own_frame(states[0].stack)
    doing = _AT_WORK.get(activity(states[0]), "")
    place = spell_place(frame.file, frame.line) if frame is not None else ""
    words = ", ".join(filter(None, (place, f"it {doing}" if doing else "")))
    return f" ({words})" if words else ""
