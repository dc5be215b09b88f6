"""Recognises jobs whose logs just stop: no rank failed, and no log shows a sign of an end."""

from __future__ import annotations

from collections.abc import Sequence

from dtdebug.recorded.job_logs.part import Stream
from dtdebug_taxonomy.logs import log_end, prefixes
from dtdebug_taxonomy.model.ranks import Verdict


def stopped_logs(streams: Sequence[Stream], ranks: int) -> Verdict | None:
    """Return the verdict on logs that stop while training; None if one of them shows a sign of an end."""
    stops = [s for s in streams if s.stops and s.progress]
    last = max(stops, key=lambda s: (s.step or 0, -(s.rank or 0)), default=None)
    if last is None or last.progress is None or last.step is None or any(_ends_after(s, last) for s in streams):
        return None
    printed = prefixes.without_prefixes(last.progress.text)
    clock = log_end.clock_in(printed.time, printed.body)
    return log_end.stop_verdict(last.step, clock, ranks, last.progress.line, last.file)


def _ends_after(s: Stream, last: Stream) -> bool:
    """Whether a stream shows a sign of an end that is not known to be earlier than the last step of another."""
    step = last.progress
    if not s.ends or step is None:
        return False
    if s.file == last.file:
        return s.line > step.line
    return s.step is not None or s.last is None or step.time is None or s.last >= step.time
