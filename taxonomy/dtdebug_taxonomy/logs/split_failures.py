"""Splits one output into unrelated failures: restarts that fail differently, appended runs.

Two failures are separate if training or a new attempt lies between them and they share neither place nor message.
Without training in between, the later one may be a consequence, and stays part of the same failure.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from dtdebug_taxonomy.logs.log import Log, read_output, role, trained_between
from dtdebug_taxonomy.model.snapshot import Snapshot
from dtdebug_taxonomy.stacks.frames import own_frame

_MOST = 4
"""Maximum number of failures per output."""
_LINES = 20_000
"""Maximum number of lines to split; a longer output is taken for one failure."""
_TRAINED = 2
"""Lines of progress from which training continues: ranks that have not noticed a failure may print one."""
_FIGURES = re.compile(r"\d+|0x[0-9a-f]+", re.IGNORECASE)


def split_failures(snapshot: Snapshot) -> tuple[Snapshot, ...]:
    """Split an output into parts that each end in a failure of their own; the snapshot alone if it has one.

    A part begins at the end of the one before; line numbers stay those of the whole. Everything known from elsewhere
    (the user's words, versions) is copied to each part.
    """
    if not snapshot.output or snapshot.exception is not None or snapshot.output.count("\n") > _LINES:
        return (snapshot,)
    log = read_output(snapshot)
    cuts = sorted({*_cuts(log)})
    if not cuts:
        return (snapshot,)
    parts: list[Snapshot] = []
    begin, known = 0, set[str]()  # of the open part
    for start, end in pairwise((0, *cuts, len(log.lines))):
        here = _signs(part_of(snapshot, log, start, end))
        if known and here and known.isdisjoint(here) and len(parts) + 1 < _MOST:
            parts.append(part_of(snapshot, log, begin, start))
            begin, known = start, here
        else:
            known |= here
    return (*parts, part_of(snapshot, log, begin, len(log.lines))) if parts else (snapshot,)


def lead_first(parts: Sequence[Snapshot]) -> tuple[Snapshot, ...]:
    """Return the parts with the one that ended the job first: the last that came after an end, or after training.

    What a rank printed while the others had not yet noticed the failure is no sign of training.
    """
    lead = next((at for at in range(len(parts) - 1, 0, -1) if _was_outlived(*parts[at - 1 : at + 1])), 0)
    return (parts[lead], *parts[:lead], *parts[lead + 1 :])


def _was_outlived(part: Snapshot, later: Snapshot) -> bool:
    """True if the job continued after the failure of a part: by a new start, or in the steps of the part below it."""
    before, after = read_output(part), read_output(later)
    ended = any(role(r) == "launcher" for r in before.events.raised)
    if ended or before.said.exits or before.events.restarts or after.first:
        return True
    end = min((r.index for r in after.outcome.own), default=len(after.lines))
    return sum(1 for rows in after.events.steps.values() for at in rows if at < end) >= _TRAINED


def _cuts(log: Log) -> Iterator[int]:
    """Yield the line positions at which another attempt or run may begin."""
    yield from (place for place in log.first if place)
    own = log.outcome.own
    if own and any(trained_between(log, own[0], other) for other in own[1:]):
        yield from _next_step(log, own[0].index)
    numbers = [line.number for line in log.lines]
    ends = {r.index for r in log.events.raised if role(r) == "launcher"}
    for end in (*ends, *(bisect_right(numbers, e.line) - 1 for e in log.said.exits)):
        yield from _next_step(log, end)  # a launcher has reported an end: later training may be another run


def _next_step(log: Log, place: int) -> Iterator[int]:
    """Yield the first line after a place that shows training."""
    later = (steps[n] for steps in log.events.steps.values() if (n := bisect_right(steps, place)) < len(steps))
    first = min(later, default=None)
    if first is not None:
        yield first


def _signs(part: Snapshot) -> set[str]:
    """Return the identity of a failure: places and messages of what ended ranks, else the signals."""
    found = read_output(part).outcome
    signs = {e.signal for e in found.exits if e.signal}
    for raised in found.own:
        frame = own_frame(raised.frames) or (raised.frames[-1] if raised.frames else None)
        signs.add(_FIGURES.sub("#", raised.text))
        if frame is not None:
            signs.add(f"{frame.file}:{frame.line}")
    return signs


def part_of(snapshot: Snapshot, log: Log, begin: int, end: int) -> Snapshot:
    """Return the snapshot with only the lines from one place to another."""
    rows = snapshot.output.split("\n")
    first, last = (_row(snapshot, log, place, len(rows)) for place in (begin, end))
    kept = tuple((line - first, whole) for line, whole in snapshot.first_lines if first + 1 < line <= last)
    return msgspec.structs.replace(
        snapshot, output="\n".join(rows[first:last]), first_lines=((1, snapshot.true_line(first + 1)), *kept)
    )


def _row(snapshot: Snapshot, log: Log, place: int, rows: int) -> int:
    """Return the number of output rows above a place among the lines that were read."""
    if place >= len(log.lines):
        return rows
    return bisect_left(range(1, rows + 1), log.lines[place].number, key=snapshot.true_line) if place else 0
