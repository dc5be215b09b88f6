"""Reduces logs to a part: reads each once, in chunks, and extracts its streams and the machine's reports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from msgspec.structs import replace

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import streams
from dtdebug.recorded.job_logs.last_run import begin_of_last_run
from dtdebug.recorded.job_logs.line_judge import Judge
from dtdebug.recorded.job_logs.part import LaunchedNode, Part
from dtdebug.recorded.job_logs.rank_from_path import LogOwner
from dtdebug.recorded.job_logs.timestamps import when
from dtdebug.recorded.log_files.excerpt import LineReader, LogError, LogLines
from dtdebug.recorded.log_files.line_blocks import CHUNK
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug.recorded.log_files.sources import LogSource, open_log
from dtdebug.recorded.log_files.training_share import measure
from dtdebug.storage import budget
from dtdebug_taxonomy.knowledge.hardware import Event, parse_event
from dtdebug_taxonomy.logs import prefixes

_TABLE_HOST = re.compile(r" {1,4}host {1,10}: ([\w.-]{1,100})$")
_TABLE_RANK = re.compile(r" {1,4}rank {1,10}: (\d{1,7}) \(local_rank: (\d{1,5})\)")
MOST = 256 << 10
"""Maximum bytes of lines kept of one log."""


class Collector(Protocol):
    """Something else that is collected from the logs while they are read."""

    def reader(self, source: LogSource, whose: LogOwner) -> LineReader | None:
        """Return what is to look at the lines of a log; None if nothing is."""


class NoCollector:
    """Collector of nothing."""

    def reader(self, source: LogSource, whose: LogOwner) -> None:
        """Return nothing."""


def part_of(sources: Sequence[LogSource], whose: Sequence[LogOwner], collector: Collector) -> Part:
    """Return the part of these logs; unreadable ones are listed in it."""
    part, judge = Part(), Judge()
    for source, names in zip(sources, whose, strict=True):
        lines = LogLines(MOST, collector.reader(source, names))
        add_log(part, judge, source, names, (lines, read_log(source, lines)))
    return part


def read_log(source: LogSource, lines: LogLines) -> str:
    """Read a log to its end; return why it could not be read, or only a part of it, else ""."""
    try:
        with open_log(source) as file:
            spent = budget.current()
            while chunk := file.read(CHUNK):
                spent.check_time()
                lines.add(chunk, source.name)
    except (OSError, EOFError, ValueError) as error:  # truncated archives raise EOFError, other data LogError
        lines.end()
        if isinstance(error, LogError):
            return str(error)
        after = f"after {lines.size:,} bytes: " if lines.size else ""
        return f"{source.name}: {after}{_why(error)}"
    lines.end()
    return ""


def add_log(part: Part, judge: Judge, source: LogSource, whose: LogOwner, read: tuple[LogLines, str]) -> None:
    """Add to a part what was read of one log: its lines, and why they are not all."""
    lines, fault = read
    if not fault or lines.size:  # what was read before it is valid
        try:
            add(part, judge, lines, source, whose)
        except ValueError as error:
            fault = f"{source.name}: {error}"
    if fault:
        part.unread.append(clean(fault)[:300])
    else:
        part.files += 1
        part.read.append(source.name)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def add(part: Part, judge: Judge, log: LogLines, source: LogSource, whose: LogOwner) -> None:
    """Add the lines kept of one log to a part."""
    part.size += log.size
    if (begin := begin_of_last_run(log, source.name)) and log.text is not None:
        log = log.since(begin)
    kept = [row for row in log.shapes.kept if row.number >= begin]
    at_end = [r for r in streams.lines_at_end(log.tail[-streams.TAIL :], log.shapes.lines) if r.number >= begin]
    share = measure([row.raw for row in {row.number: row for row in [*kept, *at_end]}.values()])  # each line once
    part.looked += share.lines
    part.known += share.known
    year = datetime.fromtimestamp(source.time, UTC).year if source.time else datetime.now(UTC).year
    judge.learn(kept)
    telling = [row for row in kept if judge.tells(row.raw)]
    part.hardware += _events(telling, source, whose, year)
    part.nodes += _nodes(kept, source.name)
    if log.shapes.dropped:
        part.unread.append(f"{source.name}: {log.shapes.dropped} lines of unlike shapes that name no failure")
    if whose.machine:
        return
    text = streams.KeptLog(source, whose, kept, telling, log.tail, log.text, log.shapes.lines, [], year, begin)
    part.streams += streams.of_log(judge, text)
    part.unread += text.skipped


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
