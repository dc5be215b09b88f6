"""Flight-recorder dumps: read with care, matched in one pass, reduced to a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from dtdebug.flight.loader import FlightError
from dtdebug_taxonomy.ranks import RankState, Verdict
from dtdebug_taxonomy.view import Timeline

__all__ = ["Analysis", "FlightError", "analyse"]


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict, and what it was made from."""

    verdict: Verdict
    ranks: tuple[int, ...]
    """Ranks whose dump was read."""
    missing_dumps: tuple[int, ...]
    notes: tuple[str, ...] = ()
    timeline: Timeline | None = None
    """The latest collectives, if they were asked for."""


def analyse(
    folder: Path,
    prefix: str | None = None,
    states: Sequence[RankState] = (),
    *,
    moving: bool | None = None,
    timeline: bool = False,
) -> Analysis:
    """The verdict on the dumps in a folder, refined by live records where there are any.

    `moving` is what an observer saw: the counters of the ranks moved until the dumps were taken, so that nothing stood
    still; or they did not, so that what waits stands still. Nobody may have watched: then the dumps' times tell.

    Raises:
        FlightError: the folder can't be read, or holds no dump and there are no live records.

    """
    from dtdebug.flight import groups, load, verdict
    from dtdebug.flight import timeline as latest

    programs, unread, notes = load.programs(folder, prefix)
    if not programs and not states:
        said = f" ({notes[0]})" if notes else ""
        raise FlightError(f"{folder}: no flight-recorder dump of a rank can be read{said}")
    known = [*states, *(RankState(rank=r) for r in unread - {s.rank for s in states})]
    layout = groups.Layout(programs, known)
    found = verdict.verdict(programs, known, layout, moving=moving)
    drawn, more = latest.timeline(programs, layout, found) if timeline else (None, ())
    return Analysis(
        verdict=found,
        ranks=tuple(sorted(programs)),
        missing_dumps=tuple(r for r in range(layout.world_size) if r not in programs),
        notes=(*notes, *more),
        timeline=drawn,
    )
