"""Estimates how far the hosts' clocks differ, from lines that all ranks print together, and corrects all times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from statistics import median

import msgspec

from dtdebug.recorded.job_logs.assign_ranks import short
from dtdebug.recorded.job_logs.part import Part, Stream, TellingLine

_LEAST = 1.0
"""Minimum difference in seconds from which a clock is corrected."""
_AGREE = 2.0
"""Seconds within which a host's own steps must agree on the offset of its clock."""
_STEADY = 5.0
"""Seconds by which a clock must differ at both the start and the end, if there are no steps to compare."""
_NEAR = 3 * 86_400.0
"""Maximum seconds between the logs of one job."""
_HOSTS = 3
"""Minimum number of hosts to compare one clock with the others."""


def clocks(streams: Sequence[Stream]) -> dict[str, float]:
    """Return host -> seconds that its clock is ahead of the others, from the first steps, which ranks print together.

    Hosts whose own steps disagree, and hosts without steps, are omitted: their offset is unknown.
    """
    by_step: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for s in streams:
        for step, time in s.marks:
            by_step[s.attempt, step][clock(s)].append(time)
    off: dict[str, list[float]] = defaultdict(list)
    for times in by_step.values():
        own = {who: median(values) for who, values in times.items()}
        if len(own) < _HOSTS:
            continue
        middle = median(own.values())
        for who, time in own.items():
            off[who].append(time - middle)
    by_steps = {
        who: round(median(rows), 3)
        for who, rows in off.items()
        if abs(median(rows)) >= _LEAST and max(rows) - min(rows) <= _AGREE
    }
    return _by_ends([s for s in streams if clock(s) not in off]) | by_steps


def _by_ends(streams: Sequence[Stream]) -> dict[str, float]:
    """Return host -> seconds that its clock is ahead, if its start and end are off by the same amount."""
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for s in streams:
        if s.began is not None and s.last is not None and s.last - s.began >= _STEADY:
            spans[clock(s)].append((s.began, s.last))
    if len(spans) < _HOSTS:
        return {}
    begins, ends = ({who: median(row[n] for row in rows) for who, rows in spans.items()} for n in (0, 1))
    begin, end = median(begins.values()), median(ends.values())
    together = [who for who in spans if max(abs(begins[who] - begin), abs(ends[who] - end)) < _STEADY]
    if len(together) * 2 < len(spans):
        return {}
    return {
        who: round((begins[who] - begin + ends[who] - end) / 2, 3)
        for who in spans
        if abs(begins[who] - begin) >= _STEADY and abs((begins[who] - begin) - (ends[who] - end)) <= _AGREE
    }


def in_year(part: Part) -> Part:
    """Move all times into one year: a time without a year takes that of its file, which may be a later copy."""
    known = [s.last for s in part.streams if s.last is not None]
    if not known:
        return part
    middle = median(known)
    return msgspec.structs.replace(
        part,
        streams=[_set(s, _years(s.last, middle)) for s in part.streams],
        hardware=[
            msgspec.structs.replace(e, time=e.time - _years(e.time, middle)) if e.time is not None else e
            for e in part.hardware
        ],
    )


def _years(time: float | None, middle: float) -> float:
    """Return the seconds between a time and the others if these are whole years plus or minus some days."""
    if time is None or abs(time - middle) < _NEAR:
        return 0.0
    try:
        own = datetime.fromtimestamp(time, UTC)
        moved = own.replace(year=datetime.fromtimestamp(middle, UTC).year).timestamp()
    except (ValueError, OverflowError, OSError):  # the 29th of February, or no date at all
        return 0.0
    return time - moved if abs(moved - middle) < _NEAR else 0.0


def clock(s: Stream) -> str:
    """Return the host or file whose clock a stream uses."""
    return s.host or s.file


def in_time(part: Part, off: dict[str, float]) -> Part:
    """Return the part with all times corrected to one clock."""
    if not off:
        return part
    ahead = {short(name): seconds for name, seconds in off.items()}
    return msgspec.structs.replace(
        part,
        streams=[_set(s, off.get(clock(s), 0.0)) for s in part.streams],
        hardware=[
            msgspec.structs.replace(e, time=e.time - ahead[short(e.host)])
            if e.time is not None and short(e.host) in ahead
            else e
            for e in part.hardware
        ],
    )


def _set(s: Stream, ahead: float) -> Stream:
    if not ahead:
        return s
    return msgspec.structs.replace(
        s,
        began=_less(s.began, ahead),
        last=_less(s.last, ahead),
        first=_less(s.first, ahead),
        told=tuple(_shift_line(t, ahead) for t in s.told),
        stall=msgspec.structs.replace(s.stall, time=s.stall.time - ahead) if s.stall is not None else None,
        progress=_shift_line(s.progress, ahead) if s.progress is not None else None,
    )


def _shift_line(told: TellingLine, ahead: float) -> TellingLine:
    return msgspec.structs.replace(told, time=_less(told.time, ahead), until=_less(told.until, ahead))


def _less(time: float | None, ahead: float) -> float | None:
    return None if time is None else time - ahead
