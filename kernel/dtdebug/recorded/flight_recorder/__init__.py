"""Reads flight-recorder dumps defensively, matches them in one pass and reduces them to a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from dtdebug.recorded.flight_recorder.load_dump import FlightError
from dtdebug.recorded.flight_recorder.rank_program import Program
from dtdebug_taxonomy.model.ranks import RankState, Verdict, spell
from dtdebug_taxonomy.model.ranks_view import Timeline
from dtdebug_taxonomy.presentation.case_json import Coverage

__all__ = ["Analysis", "FlightError", "analyse"]

_RANGES = 32
"""Maximum number of rank ranges listed in a line."""


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict and the coverage of the dumps behind it."""

    verdict: Verdict
    ranks: tuple[int, ...]
    """Ranks whose dump was read."""
    missing_dumps: tuple[int, ...]
    coverage: Coverage = Coverage()
    """Dumps that were read, and those that were not, with the reason."""
    next: str = ""
    """Recommended next step if the dumps do not explain the hang."""
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    """Latest collectives, if requested."""
    awaits: dict[int, frozenset[int]] = {}
    """Rank -> the ranks that have not come to what it waits in, if there are live records."""


def analyse(
    folder: Path,
    prefix: str | None = None,
    states: Sequence[RankState] = (),
    *,
    moving: bool | None = None,
    since: float = 0.0,
    timeline: bool = False,
) -> Analysis:
    """Return the verdict on the dumps in a folder, refined by live records if there are any.

    `moving` is an observer's result: True if the ranks' counters moved until the dumps were taken, so that nothing
    hung; False if they did not, so that pending operations hang; None without an observer: the dumps' times decide.
    `since`: the end of the job's attempt before, whose dumps show nothing of this one; 0 if there was none.

    Raises:
        FlightError: the folder can't be read, or holds no dump and there are no live records.

    """
    from dtdebug.recorded.flight_recorder import group_layout, load_folder, offline_verdict, verdict, wait_graph
    from dtdebug.recorded.flight_recorder import timeline as latest

    programs, unread, notes = load_folder.programs(folder, prefix)
    for rank in _older(programs, states):
        del programs[rank]
        notes.append(f"rank {rank}: its dump is from before it was asked, and was left out")
    for rank in [r for r, p in programs.items() if since and p.taken and p.taken < since + _LAST]:
        del programs[rank]
        notes.append(f"rank {rank}: its dump is of an attempt before, and was left out")
    if not programs and not states:
        said = f" ({notes[0]})" if notes else ""
        raise FlightError(f"{folder}: no flight-recorder dump of a rank can be read{said}")
    alone = not states and moving is None
    known = [*states, *(RankState(rank=r) for r in unread - {s.rank for s in states})]
    layout = group_layout.Layout(programs, known)
    waits = None if alone else wait_graph.Waits(programs, layout, known)
    found = (
        offline_verdict.verdict_on_dumps(programs, known, layout)
        if waits is None
        else verdict.verdict(programs, known, layout, waits, moving=moving)
    )
    drawn, more = latest.timeline(programs, layout, found) if timeline else (None, ())
    missing = tuple(r for r in range(layout.world_size) if r not in programs) if programs else ()
    return Analysis(
        verdict=found,
        ranks=tuple(sorted(programs)),
        missing_dumps=missing,
        notes=(*notes, *more),
        coverage=_coverage(programs, layout.world_size, notes),
        next=_next(folder, found.kind, missing),
        timeline=drawn,
        awaits={} if waits is None else waits.edges(),
    )


_APART = 2.0
"""Minimum age difference, in seconds, between a stale dump and those of ranks that were asked together."""


_LAST = 1.0
"""Seconds after the last record of a rank in which it may still write its dump; ranks take longer to start again."""


def _older(programs: Mapping[int, Program], states: Sequence[RankState]) -> list[int]:
    """Return the living ranks that wrote no dump on request; their existing dumps are stale."""
    came = {s.rank for s in states if s.roads.get("dump") == "ok"}
    mute = {s.rank for s in states if s.alive and "dump" in s.roads and s.rank not in came}
    first = min((p.taken for r, p in programs.items() if r in came and p.taken), default=0.0)
    return [r for r, p in programs.items() if r in mute and p.taken and p.taken < first - _APART]


def _coverage(programs: Mapping[int, Program], world: int, notes: Sequence[str]) -> Coverage:
    """Return the ranks whose dump was read, and the dumps that are missing or were refused, with the reason."""
    active = sorted(r for r, p in programs.items() if p.active_only)
    empty = sorted(r for r, p in programs.items() if not len(p.order))
    gone = [r for r in range(world) if r not in programs]
    said = [f"dumps of {spell(sorted(programs), _RANGES)}"] if programs else []
    unread = list(notes)
    if gone:
        unread.append(f"{spell(gone, _RANGES)}: no dump that can be read")
    if active:
        unread.append(f"{spell(active, _RANGES)}: the dump holds active entries only; what had ended is not in it")
    if empty:
        unread.append(f"{spell(empty, _RANGES)}: the dump holds no entry")
    return Coverage(ranks=len(programs), expected=world, read=tuple(said), unread=tuple(unread))


def _next(folder: Path, kind: str, missing: Sequence[int]) -> str:
    if kind == "none":
        return ""
    if missing:
        return f"copy the dumps of {spell(missing, _RANGES)} into {folder}, then run `dtdebug flight {folder}` again"
    if kind == "not_understood":
        return "take the dumps again while the job hangs, or ask the living ranks: `dtdebug attach`"
    return ""
