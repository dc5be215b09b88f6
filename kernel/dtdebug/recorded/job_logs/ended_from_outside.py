"""Recognises jobs ended from outside: by the scheduler, for another job, by hand. No rank is to blame for that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dtdebug.recorded.job_logs import before_scheduler, silent_ranks
from dtdebug.recorded.job_logs.merged_output import MergedOutput
from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.logs.log import Outcome

_BY_HAND = ("cancelled", "interrupted")
"""Codes also printed when the remaining ranks are ended after one has failed."""
_STILL = 300.0
"""Seconds without progress before the end from which the job counts as hung, and the end not as its cause."""
_BEFORE = 30.0
"""Seconds before the end from which a failure counts as earlier."""


def candidate(events: Sequence[Event]) -> Event | None:
    """Return the event that may have ended the job; one with a stated reason takes precedence over one by hand."""
    ends = [e for e in events if e.role == "end"]
    return min(ends, key=lambda e: (e.code in _BY_HAND, e.time is None, e.time or 0.0), default=None)


def by_hand(found: Outcome, laid: MergedOutput) -> Event | None:
    """Return the interrupt by hand if there is one and no rank failed before."""
    if not found.interrupted or found.own:
        return None
    first = min(found.interrupted, key=lambda r: r.line)
    return Event(
        code="interrupted",
        means="somebody interrupted the job by hand (KeyboardInterrupt)",
        owner="scheduler",
        role="end",
        action="if it hung, see in the tracebacks where each rank stood",
        url="https://docs.python.org/3/library/exceptions.html#KeyboardInterrupt",
        rank=first.rank,
    ).with_place(
        host="", time=laid.time(first.line), file=laid.place(first.line)[0], line=laid.place(first.line)[1],
        text=first.text,
    )  # fmt: skip


def follows(end: Event | None, time: float | None) -> bool:
    """True if a time is at or after an end with a stated reason."""
    return end is not None and end.code not in _BY_HAND and None not in (end.time, time) and time >= end.time  # type: ignore[operator]


def over(
    end: Event | None,
    found: Outcome,
    ranks: Mapping[int, Stream],
    streams: Sequence[Stream],
    place: Callable[[int], tuple[str, int]],
) -> bool:
    """True if the job was healthy until that end: no rank failed before, and training continued."""
    if end is None or found.own:
        return False
    if end.time is not None:
        ends = [s.last for s in ranks.values() if s.end and s.last is not None]
        if sum(last < end.time - _BEFORE for last in ends) * 2 > len(ends):
            return False
        last = silent_ranks.last_step_time(streams)
        if last is not None and end.time - last > _STILL:
            return False
    return end.code not in _BY_HAND or all(_after(place(e.line), end) for e in found.exits)


def reported_before(
    end: Event | None, found: Outcome, streams: Sequence[Stream], place: Callable[[int], tuple[str, int]]
) -> list[before_scheduler.FailureReport]:
    """Return failures reported before that end, if no other failure is known and no time shows continued training."""
    if end is None or found.own or went_on(end, streams) or not all(_after(place(e.line), end) for e in found.exits):
        return []
    return before_scheduler.failure_reports(end, streams)


def went_on(end: Event, streams: Sequence[Stream]) -> bool:
    """True if times show that training continued until shortly before that end."""
    last = silent_ranks.last_step_time(streams)
    return last is not None and end.time is not None and -_STILL < end.time - last <= _STILL


def _after(place: tuple[str, int], end: Event) -> bool:
    return place[0] == end.file and place[1] > end.line


def summary(end: Event, streams: Sequence[Stream]) -> str:
    """Describe that end, and state what is unknown about it."""
    words = f"{end.means[:1].upper()}{end.means[1:]}; no rank failed before."
    if went_on(end, streams):
        return words
    return f"{words} Whether training still went on until then is not known: no step near the end has a time."
