"""Splits a log by printer: when each printed, how far it got, and its telling lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.privacy.sanitize import clean
from dtdebug.recorded.job_logs import line_printer, standing_ranks, training_steps
from dtdebug.recorded.job_logs.line_judge import Judge, shape
from dtdebug.recorded.job_logs.part import TOO_MANY, TOO_SLOW, Stream, TellingLine
from dtdebug.recorded.job_logs.rank_from_path import LogOwner
from dtdebug.recorded.job_logs.second_pass import TO_THE_END, last_of_each, lines_of_shapes
from dtdebug.recorded.job_logs.stream_summary import (
    first_and_last,
    how_it_ended,
    kind_of,
    times_of,
    told_lines,
    went_on,
)
from dtdebug.recorded.job_logs.timestamps import when, year_of, zone_of
from dtdebug.recorded.log_files.line_shapes import KeptLine
from dtdebug.recorded.log_files.sources import LogSource
from dtdebug.storage import budget
from dtdebug_taxonomy.logs import completion, log_end, prefixes
from dtdebug_taxonomy.logs.lines import Line

TAIL = 32 << 10
"""Bytes at the end of a log searched for the last line of a printer that is alone in it."""
_RAY = re.compile(rb"(?:\x1b\[[0-9;]{1,8}m)?\(\w{1,60}(?:\[rank=\d{1,7}\])? pid=\d{1,9}[,)]")
"""Prefix that Ray's driver adds to its workers' lines; the driver's own lines have none."""
_BEGIN, _ENDING = 400, 200
"""Number of lines at the start and at the end of a stream searched for times and steps."""
_COMPLETION = 400
"""Lines at the end of a stream searched for words of completion."""
_STATES = 3
_EXCEPTION = 4
"""Printers for each that stopped before the end of a log, from which it is looked for in the rest of the log."""
_WORDS, _SHORT = 800, 240
_PRINTERS = 1 << 13
"""Maximum number of printers of one log that are looked at."""


class KeptLog(NamedTuple):
    """Lines kept of one log."""

    source: LogSource
    whose: LogOwner
    kept: Sequence[KeptLine]
    telling: Sequence[KeptLine]
    tail: bytes
    whole: bytes | None
    """The whole log, if it is small enough to be at hand."""
    lines: int
    skipped: list[str]
    """Printers that were not looked at for lack of time, in one line; filled in while the streams are made."""
    year: int
    begin: int = 0
    """First line of the last run; everything above is of earlier ones."""


def of_log(judge: Judge, text: KeptLog) -> list[Stream]:
    """Return the streams of a log; the prefixes of its lines are more reliable than its name."""
    rows = line_printer.lines_by_printer(text.kept)
    if len({line.who for line in rows if line.who != ("", None, 0)}) > 1 or any(_RAY.match(r.raw) for r in text.kept):
        whose = text.whose._replace(host=text.whose.node or text.whose.host)
        return _on_one_host(list(_shared_streams(judge, text._replace(whose=whose))), whose)
    return [_alone(judge, text, rows)]


def _alone(judge: Judge, text: KeptLog, rows: Sequence[Line]) -> Stream:
    """Return the stream of a file with one printer."""
    whose = text.whose
    rank = next((line.rank for line in rows if line.rank is not None), None)
    device = line_printer.device([row.raw for row in text.kept])
    if rank is None and whose.rank is None:
        rank = device.rank
    ending = [row for row in lines_at_end(text.tail[-TAIL:], text.lines) if row.number >= text.begin]
    first = ending[0].number if ending else text.lines + 1
    lined = [*(row for row in text.kept if row.number < first), *ending]
    telling = text.telling
    return _stream(
        judge,
        text,
        lined,
        telling,
        Stream(
            file=text.source.name,
            rank=whose.rank if rank is None else rank,
            local=whose.local,
            host=clean(device.host or next((line.host for line in rows if line.host), "") or whose.host)[:100],
            attempt=whose.attempt,
            pid=device.pid,
            pci=device.pci,
            world=device.world,
            line=text.lines,
            begin=text.begin,
        ),
        alone=True,
    )


def _shared_streams(judge: Judge, text: KeptLog) -> Iterable[Stream]:
    """Yield the streams of a shared file; lines that many printers share are read again, since only some were kept."""
    source, whose, kept = text.source, text.whose, text.kept
    common = {key for key in map(shape, (row.raw for row in kept)) if judge.telling.get(key)}
    common |= {shape(row.raw) for row in kept if b"nranks" in row.raw and line_printer.NCCL.search(row.raw[:800])}
    again = lines_of_shapes(source, common, text.whole)
    ends = last_of_each(lines_at_end(text.tail, text.lines), _ENDING // 2)
    both = sorted({r.number: r for r in (*kept, *again, *ends) if r.number >= text.begin}.values())
    found = line_printer.lines_by_printer(both)
    if ends and text.whole is None and (quiet := _shapes_of_quiet(found, both, ends[0].number)):
        more = lines_of_shapes(source, quiet, most=TO_THE_END)
        both = sorted({r.number: r for r in (*both, *more) if r.number >= text.begin}.values())
        found = line_printer.lines_by_printer(both)
    by_who: dict[tuple[object, ...], list[tuple[Line, KeptLine]]] = {}
    for line in found:
        by_who.setdefault(line.who, []).append((line, both[line.number - 1]))
    wanted = {row.number for row in both if judge.tells(row.raw)}
    spent = budget.current()
    for looked, rows in enumerate(by_who.values()):
        if looked == _PRINTERS or spent.is_late():
            why = TOO_MANY if looked == _PRINTERS else TOO_SLOW
            text.skipped.append(f"{source.name}: the lines of {len(by_who) - looked} of {len(by_who)} {why}")
            return
        lined = [row for _, row in rows]
        mine = [row for row in lined if row.number in wanted]
        first = rows[0][0]
        if (
            first.who == ("", None, 0)
            and not mine
            and training_steps.last_step([row.raw for row in lined[-_ENDING:]]) is None
        ):
            continue  # lines without a printer that tell nothing
        device = line_printer.device([row.raw for row in lined])
        yield _stream(
            judge,
            text,
            lined,
            mine,
            Stream(
                file=source.name,
                rank=device.rank if first.rank is None else first.rank,
                local=first.local,
                host=clean(device.host or next((line.host for line, _ in rows if line.host), "") or whose.host)[:100],
                attempt=whose.attempt,
                pid=first.pid or device.pid,
                pci=device.pci,
                world=device.world,
                line=lined[-1].number,
                labelled=first.task is not None and first.task == first.rank,
                begin=text.begin,
            ),
        )


def _shapes_of_quiet(found: Sequence[Line], rows: Sequence[KeptLine], end: int) -> set[bytes]:
    """Return the shapes of steps if a few printers have no line in the end of a log: their last step is above it."""
    last = {line.who: rows[line.number - 1].number for line in found}
    quiet = [who for who, number in last.items() if number < end and who != ("", None, 0)]
    if not 0 < len(quiet) * _EXCEPTION <= len(last):
        return set()
    return {shape(row.raw) for row in rows if training_steps.last_step([row.raw]) is not None}


def _stream(
    judge: Judge,
    text: KeptLog,
    lined: Sequence[KeptLine],
    telling: Sequence[KeptLine],
    base: Stream,
    *,
    alone: bool = False,
) -> Stream:
    """Fill in the times, progress and telling lines of a stream from its available lines."""
    zone = zone_of(row.raw for row in lined[:_BEGIN])
    year = year_of(row.raw for row in lined[:_BEGIN]) or text.year

    def at(raw: bytes) -> float | None:
        return when(raw, year, zone)

    ending = lined[-_ENDING:]
    raws = [row.raw for row in ending]
    on = went_on(lined, telling, alone=alone)
    rows = first_and_last(sorted({*telling, *on}))
    times = times_of(lined, rows, at)
    first = next((time for time, _ in times if time is not None), None)
    kind = kind_of(telling, on)
    end = log_end.read_end([_body(row.raw) for row in lined[-log_end.ROWS :]])
    return msgspec.structs.replace(
        base,
        began=next((t for row in lined[:_BEGIN] if (t := at(row.raw)) is not None), None),
        last=next((t for row in reversed(ending) if (t := at(row.raw)) is not None), None),
        step=training_steps.last_step(raws),
        first=first,
        kind=kind,
        end=how_it_ended(judge, lined, telling, on),
        told=told_lines(rows, times) if judge.is_example(kind, first) else (),
        progress=training_steps.progress(ending, at),
        marks=training_steps.marks(lined[:_BEGIN], at),
        paces=training_steps.paces(raws) or training_steps.clock_paces(ending, at),
        first_paces=training_steps.first_paces([row.raw for row in lined[:_BEGIN]]),
        stall=training_steps.longest(ending, at),
        stops=end.stops,
        ends=end.ends,
        standing=standing_ranks.standing(lined, at),
        ending=_last_of(lined, telling, at),
        done=_completed_at(lined[-_COMPLETION:]),
    )


def _last_of(
    lined: Sequence[KeptLine], telling: Sequence[KeptLine], at: Callable[[bytes], float | None]
) -> TellingLine | None:
    """Return the last line that reports no failure."""
    known = {row.number for row in telling}
    rows = (row for row in reversed(lined[-_ENDING:]) if row.raw.strip() and row.number not in known)
    last = next(rows, None)
    if last is None:
        return None
    return TellingLine(last.number, clean(last.raw[:_WORDS].decode("utf-8", "replace")).strip()[:_SHORT], at(last.raw))


def _completed_at(rows: Sequence[KeptLine]) -> int:
    if not completion.may_complete(b"\n".join(row.raw[:_WORDS] for row in rows)):
        return 0
    return completion.completed_at((row.number, _body(row.raw)) for row in rows)


def _body(raw: bytes) -> str:
    return prefixes.without_prefixes(raw.decode("utf-8", "replace").replace("\n", " ")[:_WORDS]).body


def lines_at_end(tail: bytes, count: int) -> list[KeptLine]:
    """Return the lines at the end of a log with `count` lines; of a progress bar, its last states."""
    raws = tail.split(b"\n")
    if raws and not raws[-1]:
        raws.pop()
    base = count - len(raws) + 1
    if base > 1 and len(raws) > 1:  # the first may have lost its beginning, and with it its printer
        raws, base = raws[1:], base + 1
    return [
        KeptLine(base + n, state)
        for n, raw in enumerate(raws)
        if raw
        for state in (raw.split(b"\r")[-_STATES:] if b"\r" in raw else (raw,))
    ]


def _on_one_host(streams: list[Stream], whose: LogOwner) -> list[Stream]:
    """Set the host's real name on all streams of a file that is named after one place, such as a pod."""
    names = {s.host for s in streams if s.host and s.host != whose.host}
    if not whose.host or len(names) != 1:
        return streams
    name = min(names)
    return [msgspec.structs.replace(s, host=name) for s in streams]
