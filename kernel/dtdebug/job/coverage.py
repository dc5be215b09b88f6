"""What an answer rests on: which ranks were read, by what, which were not and why; and what would show more."""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Sequence

from dtdebug.clean import clean
from dtdebug.probe.gather import world_size
from dtdebug.records.folder import RunFolder
from dtdebug_taxonomy.case import Coverage
from dtdebug_taxonomy.ranks import RankState, Verdict, spell

_MOST, _WORDS = 16, 200
_STACKS = {
    "endpoint": "stacks of {ranks} by the agents inside",
    "files": "stacks of {ranks} by the records of the agents",
    "py-spy": "stacks of {ranks} by py-spy",
    "faulthandler": "stacks of {ranks} by faulthandler",
    "dump": "flight-recorder dumps of {ranks}",
    "trace": "flight-recorder traces of {ranks}",
}
"""Road -> what came by it."""


def coverage(
    states: Sequence[RankState], output: str, missing_dumps: Sequence[int] = (), notes: Sequence[str] = ()
) -> Coverage:
    """What was looked at, and what was not."""
    read = [s for s in states if s.rank is not None and was_read(s)]
    by_road: dict[str, list[int]] = defaultdict(list)
    for s in read:
        for road, said in s.roads.items():
            if said == "ok" and road in _STACKS and s.rank is not None:
                by_road[road].append(s.rank)
    lines = output.count("\n")
    rows = [_STACKS[road].format(ranks=spell(ranks, 8)) for road, ranks in sorted(by_road.items())]
    ended = [s.rank for s in read if s.alive is False and s.rank is not None]
    rows += [f"ends of {spell(ended, 8)}"] if ended else []
    rows += [f"output, {lines} lines"] if lines else []
    dark = [s for s in states if s.rank is not None and not was_read(s)]
    return Coverage(
        ranks=len(read),
        expected=max(world_size(states), len(read)),
        hosts=len({s.host for s in read if s.host}),
        read=tuple(rows),
        unread=tuple([*_silent(dark), *(_dumps(missing_dumps)), *notes][:_MOST]),
    )


def was_read(state: RankState) -> bool:
    """Something is known of the rank besides that it should be there."""
    return state.alive is False or bool(state.stack or state.pending or state.groups or state.exception)


def following(verdict: Verdict, states: Sequence[RankState], folder: RunFolder | None) -> str:
    """The one command that would show more, where something is left to be known of ranks that live."""
    living = [s for s in states if s.alive and s.pid]
    here = [s for s in living if s.host in ("", socket.gethostname())]
    if verdict.kind in ("none", "dead", "left") or not here:
        return ""
    chosen = [s for s in here if s.rank in (verdict.culprits or verdict.waiting)] or here
    target = clean(str(folder.path)) if folder is not None else str(chosen[0].parent or chosen[0].pid)
    if any("ermission" in said or "ptrace" in said for s in chosen for said in s.roads.values()):
        return f"sudo py-spy dump --native --pid {chosen[0].pid}"
    return "" if any(s.native for s in chosen) else f"dtdebug attach --native {target}"


def _silent(states: Sequence[RankState]) -> list[str]:
    """Ranks that were not read, those with one reason together."""
    why: dict[str, list[int]] = defaultdict(list)
    for s in states:
        said = "; ".join(f"{road}: {answer}" for road, answer in s.roads.items() if answer != "ok")
        why[clean(said)[:_WORDS] or "no record"].append(s.rank or 0)
    return [f"{spell(ranks, 8)}: {reason}" for reason, ranks in why.items()]


def _dumps(missing: Sequence[int]) -> list[str]:
    return [f"no flight-recorder dump of {spell(missing, 8)}"] if missing else []
