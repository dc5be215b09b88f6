"""Merges the telling lines of all ranks by time into one output, for the general parser of printed failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dtdebug.recorded.job_logs.part import Stream
from dtdebug.recorded.job_logs.stream_summary import BELOW
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.logs.lines import UNNAMED

LINES = 60_000
_SEVERAL = 2
_END = float("inf")
"""Time of a line without one."""


class MergedOutput:
    """Telling lines of all ranks as one output."""

    def __init__(self, streams: Sequence[Stream], events: Sequence[Event]) -> None:
        rows: list[tuple[float, int, int, str, str, int, float | None]] = []
        for e in events:
            if e.role == "root" and e.owner != "application":
                who = f"[rank{e.rank}]: " if e.rank is not None else ""
                rows.append((_END if e.time is None else e.time, -1, e.line, f"{who}{e.text}", e.file, e.line, e.time))
        self._shared = {file for file, count in Counter(s.file for s in streams).items() if count > 1}
        files = Counter(s.rank for s in streams if s.rank is not None)
        spoken = {s.rank for s in streams if s.told}
        several = {rank for rank, count in files.items() if count > 1 and rank in spoken}
        nameless = sum(s.rank is None and bool(s.told) for s in streams)
        for place, stream in enumerate(streams):
            time = stream.first if stream.first is not None else _END
            prefix = _prefix(stream, place, alone=nameless < _SEVERAL)
            for told in stream.told:  # a stream's own lines keep their order, whatever their clocks show
                time = max(time, told.time or time) if time != _END else told.time or time
                rows.append((time, place, told.line, f"{prefix}{told.text}", stream.file, told.line, told.until))
            shown = stream.progress
            if shown is not None and shown.time and stream.rank in several:  # else it is unknown whether it came later
                rows.append(
                    (shown.time, place, shown.line, f"{prefix}{shown.text}", stream.file, shown.line, shown.time)
                )
        rows.sort(key=lambda row: row[:3])
        rows = rows[:LINES]
        self.text = "\n".join(row[3] for row in rows)
        self.places = tuple((row[4], row[5]) for row in rows)
        self.times = tuple(None if row[0] == _END else row[0] for row in rows)
        self.until = tuple(row[6] for row in rows)
        """Latest time at which each line may have been printed."""

    def place(self, line: int) -> tuple[str, int]:
        """Return the file and line of a line of the output."""
        return self.places[line - 1] if 0 < line <= len(self.places) else ("", 0)

    def time(self, line: int) -> float | None:
        """Return the time of a line of the output."""
        return self.times[line - 1] if 0 < line <= len(self.times) else None

    def below(self, line: int, end: int) -> bool:
        """True if a line directly follows a traceback's last line in its log; other ranks' lines may be between."""
        if not end < line <= len(self.places):
            return False
        (file, number), (other, last) = self.places[line - 1], self.places[end - 1]
        return file == other and 0 < number - last <= (BELOW if file in self._shared else 1)


def _prefix(stream: Stream, place: int, *, alone: bool) -> str:
    """Return the printer as torch prefixes a rank; printers without a known rank get distinct prefixes."""
    if stream.rank is not None:
        return f"[rank{stream.rank}]: "
    if stream.local is not None or stream.pid or not alone:
        name = f"{stream.host}:{stream.local}" if stream.host and stream.local is not None else "log"
        return f"({name} pid={stream.pid or place + 1}, ip={UNNAMED}{place}) "
    return ""
