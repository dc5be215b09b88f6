"""Those who print in one log: from when to when each does, how far it came, and the lines that tell something."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import islice, takewhile
from typing import NamedTuple

import msgspec

from dtdebug.clean import clean
from dtdebug.logs.opened import Source
from dtdebug.logs.shapes import Kept
from dtdebug.triage import steps, who
from dtdebug.triage.again import lines_of_shapes
from dtdebug.triage.clock import when, year_of, zone_of
from dtdebug.triage.judge import Judge, shape
from dtdebug.triage.names import Whose
from dtdebug.triage.part import Stream, TellingLine
from dtdebug.triage.steps import When
from dtdebug_taxonomy.failure import events, grammar, progress
from dtdebug_taxonomy.failure.lines import Line

TAIL, SHARED_TAIL = 32 << 10, 4 << 20
"""Bytes of the end in which the last line of one who prints is looked for: alone in a file, or one of many."""
_TOLD, _WORDS = 240, 1_000
"""Telling lines of a stream, and characters of each."""
_CALL = re.compile(rb"SeqNum=\d{1,18}, OpType=\w{1,40}, NumelIn=\d{1,18}, NumelOut=\d{1,18}")
_RAY = re.compile(rb"(?:\x1b\[[0-9;]{1,8}m)?\(\w{1,60}(?:\[rank=\d{1,7}\])? pid=\d{1,9}[,)]")
"""What Ray's driver puts before lines of its workers, beside its own lines without a prefix."""
_BEGIN, _ENDING = 400, 200
"""Lines at the beginning and at the end of a stream in which times and steps are looked for."""
_LAST_WORDS = 60
"""Lines of the end among which what it tells is how it ended."""
_ABOVE = 50
"""Lines above one without a time in which there is one."""
BELOW = 64
"""Lines of others that may stand below a traceback in a log of several."""
_STATES, _SHORT = 3, 200
_FAR = 1 << 62


class Text(NamedTuple):
    """What is kept of one log."""

    source: Source
    whose: Whose
    kept: Sequence[Kept]
    telling: Sequence[Kept]
    tail: bytes
    lines: int
    year: int


def of_log(judge: Judge, text: Text) -> list[Stream]:
    """Those who print in a log: the prefixes of its lines know better than its name."""
    rows = who.lines_by_printer(text.kept)
    if len({line.who for line in rows if line.who != ("", None, 0)}) > 1 or any(_RAY.match(r.raw) for r in text.kept):
        whose = text.whose._replace(host=text.whose.node or text.whose.host)
        return _on_one_host(list(_shared(judge, text._replace(whose=whose))), whose)
    return [_alone(judge, text, rows)]


def _alone(judge: Judge, text: Text, rows: Sequence[Line]) -> Stream:
    """The one who prints in a file."""
    whose = text.whose
    rank = next((line.rank for line in rows if line.rank is not None), None)
    device = who.device([row.raw for row in text.kept])
    if rank is None and whose.rank is None:
        rank = device.rank
    ending = _ending(text.tail[-TAIL:], text.lines)
    first = ending[0].number if ending else text.lines + 1
    lined = [*(row for row in text.kept if row.number < first), *ending]
    return _stream(
        judge,
        text,
        lined,
        text.telling,
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
        ),
        alone=True,
    )


def _shared(judge: Judge, text: Text) -> Iterable[Stream]:
    """Those who print in one file. What many of them print is looked up once more, for only some of it was kept."""
    source, whose, kept = text.source, text.whose, text.kept
    common = {key for key in map(shape, (row.raw for row in kept)) if judge.telling.get(key)}
    common |= {shape(row.raw) for row in kept if b"busId" in row.raw and who.NCCL.search(row.raw[:800])}
    telling = lines_of_shapes(source, common) if source.path != "-" else [row for row in kept if judge.tells(row.raw)]
    ends = _ending(text.tail, text.lines)
    both = sorted({row.number: row for row in (*kept, *telling, *ends)}.values())
    found = who.lines_by_printer(both)
    by_who: dict[tuple[object, ...], list[tuple[Line, Kept]]] = {}
    for line in found:
        by_who.setdefault(line.who, []).append((line, both[line.number - 1]))
    wanted = {row.number for row in telling if judge.tells(row.raw)}
    for rows in by_who.values():
        lined = [row for _, row in rows]
        mine = [row for row in lined if row.number in wanted]
        first = rows[0][0]
        if first.who == ("", None, 0) and not mine:
            continue  # lines of nobody that tell nothing
        device = who.device([row.raw for row in lined])
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
            ),
        )


def _stream(
    judge: Judge, text: Text, lined: Sequence[Kept], telling: Sequence[Kept], base: Stream, *, alone: bool = False
) -> Stream:
    """Who prints, with when, how far it came and what it tells, from its lines as far as they are at hand."""
    zone = zone_of(row.raw for row in lined[:_BEGIN])
    year = year_of(row.raw for row in lined[:_BEGIN]) or text.year

    def at(raw: bytes) -> float | None:
        return when(raw, year, zone)

    ending = lined[-_ENDING:]
    raws = [row.raw for row in ending]
    went_on = _went_on(lined, telling, alone=alone)
    rows = _ends(sorted({*telling, *went_on}))
    told = _told(rows, _times(lined, rows, at))
    first = next((t.time for t in told if t.time is not None), None)
    kind = _kind(telling, went_on)
    return msgspec.structs.replace(
        base,
        began=next((t for row in lined[:_BEGIN] if (t := at(row.raw)) is not None), None),
        last=next((t for row in reversed(ending) if (t := at(row.raw)) is not None), None),
        step=steps.last_step(raws),
        first=first,
        kind=kind,
        end=_end(judge, lined, telling, went_on),
        told=told if judge.is_example(kind, first) else (),
        progress=steps.progress(ending, at),
        marks=steps.marks(lined[:_BEGIN], at),
        paces=steps.paces(raws) or steps.clocked(ending, at),
        first_paces=steps.first_paces([row.raw for row in lined[:_BEGIN]]),
        stall=steps.longest(ending, at),
    )


def _end(judge: Judge, lined: Sequence[Kept], telling: Sequence[Kept], went_on: Sequence[Kept]) -> str:
    """The kind of the telling lines that end a stream: of the last ones without another line or steps after them."""
    begin = max(steps.until(lined), *(row.number for row in went_on), 0)
    begin = max(begin, lined[-_LAST_WORDS].number if len(lined) >= _LAST_WORDS else 0)
    numbers = {row.number: place for place, row in enumerate(lined)}
    found: list[Kept] = []
    for row in reversed(telling):
        if row.number <= begin or (found and numbers.get(row.number, 0) + 1 < numbers.get(found[-1].number, 0)):
            break
        found.append(row)
    return _kind(found, ()) if any(judge.says(row.raw) for row in found) else ""


def _went_on(lined: Sequence[Kept], telling: Sequence[Kept], *, alone: bool) -> list[Kept]:
    """After each traceback the first line that shows progress, if one comes before the next: it ended nothing."""
    begins = [row.number for row in telling if b"Traceback (most" in row.raw]
    if not begins:
        return []
    known = {row.number for row in telling}
    found, place = [], 0
    for begin, until in zip(begins, [*begins[1:], _FAR], strict=True):
        while place < len(lined) and lined[place].number <= begin:
            place += 1
        if (says := _handled(begin, until, telling, lined, alone=alone)) is not None:
            found.append(says)
            continue
        inside, bar = True, progress.Barred()
        for row in lined[place:]:
            if row.number >= until:
                break
            inside = inside and row.number in known
            if inside or row.number in known:
                continue
            words = _words(row.raw[:300])
            if progress.PROGRESS.search(words):
                found.append(row)  # of a bar its state before, too: by that alone the next one shows progress
                if progress.advanced(bar, words):
                    break
    return found


def _handled(begin: int, until: int, telling: Sequence[Kept], lined: Sequence[Kept], *, alone: bool) -> Kept | None:
    """The line below a traceback, if it says that the program goes on."""
    above = bisect_right(telling, begin, key=lambda row: row.number)
    inside = takewhile(lambda row: row.number < until, islice(telling, above, None))
    last = next(
        (r for r in inside if not grammar.without_prefixes(_words(r.raw[:_SHORT])).body.startswith((" ", "\t"))), None
    )
    if last is None:
        return None
    below = bisect_right(lined, last.number, key=lambda row: row.number)
    near = below < len(lined) and lined[below].number <= min(until - 1, last.number + (1 if alone else BELOW))
    return lined[below] if near and events.goes_on(_words(lined[below].raw[:_SHORT])) else None


def _words(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


_Times = Sequence[tuple[float | None, float | None]]


def _times(lined: Sequence[Kept], rows: Sequence[Kept], at: When) -> _Times:
    """The time of each row: its own, else that of a line shortly above it; and when it was printed at the latest."""
    both = sorted({*lined, *rows})
    places = [bisect_left(both, row) for row in rows]
    found: list[float | None] = []
    time: float | None = None
    seen = 0
    for row, place in zip(rows, places, strict=True):
        least = max(seen, row.number - _ABOVE - 1)
        for above in reversed(range(place + 1)):
            if both[above].number <= least:
                break
            if (own := at(both[above].raw)) is not None:
                time, seen = own, both[above].number
                break
        near = row.number - seen <= _ABOVE
        found.append(time if near else None)
        seen = row.number if near else seen
    until: list[float | None] = []
    later, end = None, len(both)
    for place in reversed(places):
        own = next((t for n in range(place, end) if (t := at(both[n].raw)) is not None), None)
        later, end = own if own is not None else later, place
        until.append(later)
    return list(zip(found, reversed(until), strict=True))


def _ending(tail: bytes, count: int) -> list[Kept]:
    """The lines of the end of a log of so many lines; of a progress bar its last states."""
    raws = tail.split(b"\n")
    if raws and not raws[-1]:
        raws.pop()
    base = count - len(raws) + 1
    if base > 1 and len(raws) > 1:  # the first may have lost its begin, and with it who prints it
        raws, base = raws[1:], base + 1
    return [
        Kept(base + n, state)
        for n, raw in enumerate(raws)
        if raw
        for state in (raw.split(b"\r")[-_STATES:] if b"\r" in raw else (raw,))
    ]


def _on_one_host(streams: list[Stream], whose: Whose) -> list[Stream]:
    """The true name of the host for all in a file that is named for one place, such as a pod."""
    names = {s.host for s in streams if s.host and s.host != whose.host}
    if not whose.host or len(names) != 1:
        return streams
    name = min(names)
    return [msgspec.structs.replace(s, host=name) for s in streams]


def _told(rows: Sequence[Kept], times: _Times) -> tuple[TellingLine, ...]:
    return tuple(
        TellingLine(row.number, text, *time) for row, time in zip(rows, times, strict=True) for text in _texts(row.raw)
    )


def _ends(rows: list[Kept]) -> list[Kept]:
    """The first ones and the last ones where there are many."""
    return [*rows[: _TOLD // 2], *rows[-_TOLD // 2 :]] if len(rows) > _TOLD else rows


def _texts(raw: bytes) -> list[str]:
    """A line as text; of a record in JSON the lines of its message, for its own fields are known."""
    text = clean(_words(raw)).replace("\n", " ")
    rows = grammar.records(text) if text.startswith("{") else None
    return [text[:_WORDS]] if rows is None else [row.body[:_WORDS] for row in rows]


def _kind(telling: Iterable[Kept], went_on: Iterable[Kept]) -> str:
    """The same for streams whose telling lines have the same shapes, name the same collective and went on after."""
    shapes = {
        shape(text.encode()) if row.raw[:1] == b"{" else shape(row.raw)
        for row in telling
        for text in (_texts(row.raw) if row.raw[:1] == b"{" else ("",))
    }
    if not shapes:
        return ""
    calls = {found[0] for row in telling if b"Watchdog" in row.raw and (found := _CALL.search(row.raw))}
    on = [b"went on"] * sum(1 for _ in went_on)
    return hashlib.blake2b(b"\n".join([*sorted(shapes), *sorted(calls), *on]), digest_size=8).hexdigest()
