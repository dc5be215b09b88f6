"""Reduces logs to a part: reads each once, in chunks, and extracts its streams and the machine's reports."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import last_program, streams
from dtdebug.recorded.job_logs.line_judge import Judge
from dtdebug.recorded.job_logs.part import LaunchedNode, Part
from dtdebug.recorded.job_logs.rank_from_path import LogOwner
from dtdebug.recorded.job_logs.streams import SHARED_TAIL
from dtdebug.recorded.job_logs.timestamps import when
from dtdebug.recorded.log_files import excerpt
from dtdebug.recorded.log_files.excerpt import LogError
from dtdebug.recorded.log_files.line_blocks import CHUNK, LineBuffer
from dtdebug.recorded.log_files.line_shapes import KeptLine, Shapes
from dtdebug.recorded.log_files.sources import LogSource, open_log
from dtdebug.recorded.log_files.training_share import measure
from dtdebug_taxonomy.knowledge.hardware import Event, parse_event
from dtdebug_taxonomy.logs import prefixes

_TABLE_HOST = re.compile(r" {1,4}host {1,10}: ([\w.-]{1,100})$")
_TABLE_RANK = re.compile(r" {1,4}rank {1,10}: (\d{1,7}) \(local_rank: (\d{1,5})\)")
_MOST = 256 << 10
"""Maximum bytes of lines kept of one log."""


def part_of(sources: Sequence[LogSource], whose: Sequence[LogOwner]) -> Part:
    """Return the part of these logs; unreadable ones are listed in it."""
    part, judge = Part(), Judge()
    for source, names in zip(sources, whose, strict=True):
        try:
            one(part, judge, source, names)
        except (OSError, EOFError, ValueError) as error:  # truncated archives raise EOFError, other data LogError
            why = str(error) if isinstance(error, LogError) else f"{source.name}: {_why(error)}"
            part.unread.append(clean(why)[:300])
        else:
            part.files += 1
            part.read.append(source.name)
    return part


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def one(part: Part, judge: Judge, source: LogSource, whose: LogOwner) -> None:
    """Add one log to a part."""
    log = Log()
    cut_off = None
    with open_log(source) as file:
        try:
            while chunk := file.read(CHUNK):
                log.add(chunk, source.name)
        except (OSError, EOFError) as error:
            if not log.size:
                raise
            cut_off = error
    log.end()
    add(part, judge, log, source, whose)
    if cut_off is not None:  # what was read before it is valid
        raise OSError(0, f"after {log.size:,} bytes: {_why(cut_off)}")


class Log:
    """Lines kept of one log while it is read."""

    def __init__(self) -> None:
        self.shapes = Shapes(most=_MOST, choose=excerpt.telling)
        self.size = 0
        self._runs: deque[bytes] = deque()
        self._kept = 0
        """Total bytes of those runs."""
        self._whole = LineBuffer()

    @property
    def tail(self) -> bytes:
        """End of the log, in whole lines except for the first."""
        return b"".join(self._runs)[-SHARED_TAIL:]

    def add(self, chunk: bytes, name: str) -> None:
        """Add the next bytes.

        Raises:
            LogError: it is not text.

        """
        if not self.size:
            excerpt.refuse_binary(chunk[:8192], name)
        self.size += len(chunk)
        if run := self._whole.add(chunk):
            self._take(run)

    def end(self) -> None:
        """Finish the log; its last line may lack a line end."""
        if rest := self._whole.end():
            self._take(rest)

    def _take(self, run: bytes) -> None:
        self.shapes.take(run)
        self._runs.append(run)
        self._kept += len(run)
        while self._kept - len(self._runs[0]) >= SHARED_TAIL:
            self._kept -= len(self._runs.popleft())


def add(part: Part, judge: Judge, log: Log, source: LogSource, whose: LogOwner) -> None:
    """Add the lines kept of one log to a part."""
    kept = log.shapes.kept
    part.size += log.size
    share = measure([row.raw for row in kept] + log.tail[-streams.TAIL :].splitlines())
    part.looked += share.lines
    part.known += share.known
    year = datetime.fromtimestamp(source.time, UTC).year if source.time else datetime.now(UTC).year
    judge.learn(kept)
    begin = 0
    if any(b"*** JOB " in row.raw for row in kept):
        begin = last_program.last_job(sorted({*kept, *streams.lines_at_end(log.tail, log.shapes.lines)}))
        kept = [row for row in kept if row.number >= begin]
    telling = [row for row in kept if judge.tells(row.raw)]
    part.hardware += _events(telling, source, whose, year)
    part.nodes += _nodes(kept, source.name)
    if log.shapes.dropped:
        part.unread.append(f"{source.name}: {log.shapes.dropped} lines of unlike shapes that name no failure")
    if whose.machine:
        return
    text = streams.KeptLog(source, whose, kept, telling, log.tail, log.shapes.lines, year, begin)
    part.streams += streams.of_log(judge, text)


def _nodes(rows: Iterable[KeptLine], name: str) -> Iterable[LaunchedNode]:
    """Yield nodes from torchrun's failure report: host, rank and local rank of a process."""
    host, begin = "", 0
    for row in rows:
        if b"host  " not in row.raw and b"(local_rank: " not in row.raw:
            continue
        body = clean(prefixes.without_prefixes(row.raw[:1_000].decode("utf-8", "replace")).body)
        if found := _TABLE_HOST.match(body):
            host, begin = found[1], row.number
        elif (found := _TABLE_RANK.match(body)) and row.number == begin + 1 and int(found[1]) >= int(found[2]):
            yield LaunchedNode(name, host, int(found[1]) - int(found[2]))


def _events(rows: Iterable[KeptLine], source: LogSource, whose: LogOwner, year: int) -> Iterable[Event]:
    for row in rows:
        text = clean(row.raw.decode("utf-8", "replace"))
        event = parse_event(text)
        if event is not None:
            told = prefixes.without_prefixes(text)
            yield replace(event, rank=told.rank if told.rank is not None else whose.rank).with_place(
                host=event.host or told.host or whose.host,
                time=when(row.raw, year),
                file=source.name,
                line=row.number,
                text=told.body[:300],
            )
