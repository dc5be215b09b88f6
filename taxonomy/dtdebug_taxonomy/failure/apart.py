"""Several failures in one output: an attempt that fails otherwise than the one before, a run that was appended.

Two are told apart where training or a new attempt lies between them and they have neither place nor message in common.
What comes without training in between may be a consequence, and stays part of the one failure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from dtdebug_taxonomy.failure.log import Log, read_output, role, trained_between
from dtdebug_taxonomy.frames import own_frame
from dtdebug_taxonomy.snapshot import Snapshot

_MOST = 4
"""Failures of one output that are told."""
_LINES = 20_000
"""Lines of an output that is looked at: a longer one is read for its first rank alone."""
_FIGURES = re.compile(r"\d+|0x[0-9a-f]+", re.IGNORECASE)


def apart(snapshot: Snapshot) -> tuple[Snapshot, ...]:
    """The parts of an output that each end in a failure of their own, in their order; the snapshot alone if it has one.

    A part holds the lines from the end of the one before; numbers of lines stay those of the whole. What is known
    beside the output (the user's words, versions) goes with each.
    """
    if not snapshot.output or snapshot.exception is not None or snapshot.output.count("\n") > _LINES:
        return (snapshot,)
    log = read_output(snapshot)
    cuts = sorted({*_cuts(log)})
    if not cuts:
        return (snapshot,)
    parts: list[Snapshot] = []
    begin, known = 0, set[str]()  # of the part that is open
    for start, end in pairwise((0, *cuts, len(log.lines))):
        here = _signs(_part(snapshot, log, start, end))
        if known and here and known.isdisjoint(here) and len(parts) + 1 < _MOST:
            parts.append(_part(snapshot, log, begin, start))
            begin, known = start, here
        else:
            known |= here
    return (*parts, _part(snapshot, log, begin, len(log.lines))) if parts else (snapshot,)


def _cuts(log: Log) -> Iterator[int]:
    """Places of lines at which another attempt or run may begin."""
    yield from (place for place in log.first if place)
    own = log.outcome.own
    if own and any(trained_between(log, own[0], other) for other in own[1:]):
        yield from _next_step(log, own[0].index)
    numbers = [line.number for line in log.lines]
    ends = {r.index for r in log.events.raised if role(r) == "launcher"}
    for end in (*ends, *(bisect_right(numbers, e.line) - 1 for e in log.said.exits)):
        yield from _next_step(log, end)  # a launcher has told of an end: what trains below may be another run


def _next_step(log: Log, place: int) -> Iterator[int]:
    """The first line below a place that shows training."""
    later = (steps[n] for steps in log.events.steps.values() if (n := bisect_right(steps, place)) < len(steps))
    first = min(later, default=None)
    if first is not None:
        yield first


def _signs(part: Snapshot) -> set[str]:
    """What a failure is known again by: places and messages of what ended ranks, else the signal."""
    found = read_output(part).outcome
    signs = {e.signal for e in found.exits if e.signal}
    for raised in found.own:
        frame = own_frame(raised.frames) or (raised.frames[-1] if raised.frames else None)
        signs.add(_FIGURES.sub("#", raised.text))
        if frame is not None:
            signs.add(f"{frame.file}:{frame.line}")
    return signs


def _part(snapshot: Snapshot, log: Log, begin: int, end: int) -> Snapshot:
    """The lines from one place to another, and what else is known."""
    rows = snapshot.output.split("\n")
    first, last = (_row(snapshot, log, place, len(rows)) for place in (begin, end))
    kept = tuple((line - first, whole) for line, whole in snapshot.first_lines if first + 1 < line <= last)
    return msgspec.structs.replace(
        snapshot, output="\n".join(rows[first:last]), first_lines=((1, snapshot.true_line(first + 1)), *kept)
    )


def _row(snapshot: Snapshot, log: Log, place: int, rows: int) -> int:
    """How many rows of the output stand above a place among the lines that were read."""
    if place >= len(log.lines):
        return rows
    return bisect_left(range(1, rows + 1), log.lines[place].number, key=snapshot.true_line) if place else 0
