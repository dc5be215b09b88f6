"""Those who print in one log: from when to when each does, how far it came, and the lines that tell something."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dtdebug.clean import clean
from dtdebug.logs.opened import Source, opened
from dtdebug.logs.shapes import Kept
from dtdebug.triage.clock import when, year_of, zone_of
from dtdebug.triage.judge import Judge, shape
from dtdebug.triage.names import Whose
from dtdebug.triage.part import Stream, Told
from dtdebug_taxonomy.failure import events, grammar, lines
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.hardware import bus

_CHUNK = 1 << 20
TAIL, SHARED_TAIL = 32 << 10, 4 << 20
"""Bytes of the end in which the last line of one who prints is looked for: alone in a file, or one of many."""
_TOLD, _WORDS = 240, 1_000
"""Telling lines of a stream, and characters of each."""
_AGAIN = 400_000
"""Lines of many ranks in one file that are looked at once more for who else printed them."""
_SAYS = re.compile(r"\[(?:PG (?:ID )?0 (?:PG GUID 0)?(?:\(default_pg\) )?)?Rank (\d{1,7})\] ")
_STEP = re.compile(rb"(?i)(?:\b(?:step|iter(?:ation)?|batch)s?\b['\"]?[ _:=#\[(]{0,4}|\bit[=:] ?)(\d{1,9})\b")
_PACE = re.compile(
    rb"(?i)(?:(?:(?:step|iter(?:ation)?|batch|elapsed)[ _-]?tim(?:e|ing)[^0-9:=]{0,40}"
    rb"|\b(?:time|seconds)(?: \(s(?:ec)?\))?)[:=] {0,3}(\d{1,6}(?:\.\d{1,9})?) {0,2}(ms|s)?\b"
    rb"|\btime (\d{1,5}\.\d{1,9}) ?(ms|s)\b"
    rb"|\b(\d{1,5}\.\d{1,6}) ?(ms|s)/(?:it|step|batch))"
)
_PACES = 24
_CALL = re.compile(rb"SeqNum=\d{1,18}, OpType=\w{1,40}, NumelIn=\d{1,18}, NumelOut=\d{1,18}")
_BEGIN, _ENDING = 400, 200
"""Lines at the beginning and at the end of a stream in which times and steps are looked for."""
_LAST_WORDS = 60
"""Lines of the end among which what it tells is how it ended."""
_ABOVE = 50
"""Lines above one without a time in which there is one."""
_PODS = 3
"""Pods from which on it shows that each runs one rank."""
BELOW = 64
"""Lines of others that may stand below a traceback in a log of several."""
_MARKS, _STATES, _SHORT = 6, 3, 200
_FAR = 1 << 62
_NCCL = re.compile(
    rb"(?P<host>[\w.-]{1,100}):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,3}\] NCCL INFO .{0,200}"
    rb"\brank (?P<rank>\d{1,7}) nranks (?P<world>\d{1,7}) cudaDev \d{1,3} (?:nvmlDev \d{1,3} )?"
    rb"busId (?P<bus>[0-9a-f]{3,12})"
)
"""What NCCL says of a rank when it makes a communicator, with `NCCL_DEBUG=INFO`."""
_JOINS = re.compile(rb"process group for: .{0,40}\[rank=(\d{1,7}), world_size=\d{1,7}\]")
"""What a worker of Ray Train says when it joins."""


When = Callable[[bytes], float | None]
"""The time of a line."""


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
    rows = _read(text.kept)
    if len({line.who for line in rows if line.who != ("", None, 0)}) > 1:
        whose = text.whose._replace(host=text.whose.node or text.whose.host)
        return _on_one_host(list(_shared(judge, text._replace(whose=whose))), whose)
    return [_alone(judge, text, rows)]


def _read(kept: Sequence[Kept]) -> list[Line]:
    text = "\n".join(row.raw.decode("utf-8", "replace").replace("\n", " ") for row in kept)
    world = _device([row.raw for row in kept]).world
    return _one_each([_named(line, world) for line in lines.read(text, whole=False)])


def _one_each(rows: list[Line]) -> list[Line]:
    """Where each pod is seen to run one rank, all of its lines are that rank's."""
    known: dict[str, set[int]] = {}
    for line in rows:
        if line.host and line.local is not None:
            return rows
        if line.host and line.rank is not None:
            known.setdefault(line.host, set()).add(line.rank)
    ranks = set().union(*known.values())
    if len(known) < _PODS or len(ranks) != len(known) or any(len(of) > 1 for of in known.values()):
        return rows
    return [
        line._replace(rank=min(known[line.host])) if line.rank is None and line.host in known else line for line in rows
    ]


def _named(line: Line, world: int) -> Line:
    """With the rank that the message alone says: NCCL of the largest group, Ray, an older torch of the job's group."""
    if line.rank is not None:
        return line
    if world and "busId" in line.body and (made := _NCCL.search(line.body[:800].encode())):
        return line._replace(rank=int(made["rank"])) if int(made["world"]) == world else line
    if "world_size=" in line.body and (made := _JOINS.search(line.body[:800].encode())):
        return line._replace(rank=int(made[1]))
    if not line.body.startswith(("[Rank ", "[PG ")):
        return line
    found = _SAYS.match(line.body)
    return line._replace(rank=int(found[1])) if found else line


def _alone(judge: Judge, text: Text, rows: Sequence[Line]) -> Stream:
    """The one who prints in a file."""
    whose = text.whose
    rank = next((line.rank for line in rows if line.rank is not None), None)
    device = _device([row.raw for row in text.kept])
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
    common |= {shape(row.raw) for row in kept if b"busId" in row.raw and _NCCL.search(row.raw[:800])}
    telling = _all_of(source, common) if source.path != "-" else [row for row in kept if judge.tells(row.raw)]
    ends = _ending(text.tail, text.lines)
    both = sorted({row.number: row for row in (*kept, *telling, *ends)}.values())
    found = _read(both)
    by_who: dict[tuple[object, ...], list[tuple[Line, Kept]]] = {}
    for line in found:
        by_who.setdefault(line.who, []).append((line, both[line.number - 1]))
    wanted = {row.number for row in telling if judge.tells(row.raw)}
    for rows in by_who.values():
        lined = [row for _, row in rows]
        mine = [row for row in lined if row.number in wanted]
        first = rows[0][0]
        if first.rank is None and first.local is None and not first.pid and not mine:
            continue  # lines of nobody that tell nothing
        device = _device([row.raw for row in lined])
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
    judge: Judge, text: Text, lined: Sequence[Kept], telling: Sequence[Kept], who: Stream, *, alone: bool = False
) -> Stream:
    """Who prints, with when, how far it came and what it tells, from its lines as far as they are at hand."""
    zone = zone_of(row.raw for row in lined[:_BEGIN])
    year = year_of(row.raw for row in lined[:_BEGIN]) or text.year

    def at(raw: bytes) -> float | None:
        return when(raw, year, zone)

    ending = lined[-_ENDING:]
    steps = [row.raw for row in ending]
    went_on = _went_on(lined, telling, alone=alone)
    rows = sorted({*telling, *went_on})
    told = _told(rows, _times(lined, rows, at))
    first = next((t.time for t in told if t.time is not None), None)
    kind = _kind(telling, went_on)
    return msgspec.structs.replace(
        who,
        began=next((t for row in lined[:_BEGIN] if (t := at(row.raw)) is not None), None),
        last=next((t for row in reversed(ending) if (t := at(row.raw)) is not None), None),
        step=_step(steps),
        first=first,
        kind=kind,
        end=_end(judge, lined, telling, went_on),
        told=told if judge.is_example(kind, first) else (),
        progress=_progress(ending, at),
        marks=_marks(lined[:_BEGIN], at),
        paces=_paces(steps) or _clocked(ending, at),
    )


def _end(judge: Judge, lined: Sequence[Kept], telling: Sequence[Kept], went_on: Sequence[Kept]) -> str:
    """The kind of the telling lines that end a stream: of the last ones without another line between them."""
    begin = max((row.number for row in went_on), default=0)
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
        inside = True
        for row in lined[place:]:
            if row.number >= until:
                break
            inside = inside and row.number in known
            if not inside and row.number not in known and events.PROGRESS.search(_words(row.raw[:300])):
                found.append(row)
                break
    return found


def _handled(begin: int, until: int, telling: Sequence[Kept], lined: Sequence[Kept], *, alone: bool) -> Kept | None:
    """The line below a traceback, if it says that the program goes on."""
    inside = (row for row in telling if begin < row.number < until)
    last = next((r for r in inside if not grammar.told(_words(r.raw[:_SHORT])).body.startswith((" ", "\t"))), None)
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
    wanted = {row.number for row in rows}
    found: dict[int, float | None] = {}
    time: float | None = None
    seen = 0
    both = sorted({*lined, *rows})
    for row in both:
        if row.number in wanted or row.number + _ABOVE > min(wanted, default=0):
            own = at(row.raw)
            if own is not None:
                time, seen = own, row.number
            if row.number in wanted:
                found[row.number] = time if row.number - seen <= _ABOVE else None
                seen = row.number if row.number - seen <= _ABOVE else seen
    until: dict[int, float | None] = {}
    time = None
    for row in reversed(both):
        if row.number < min(wanted, default=0):
            break
        own = at(row.raw)
        time = own if own is not None else time
        until[row.number] = time
    return [(found[row.number], until[row.number]) for row in rows]


def _ending(tail: bytes, count: int) -> list[Kept]:
    """The lines of the end of a log of so many lines; of a progress bar its last states."""
    raws = tail.split(b"\n")
    if raws and not raws[-1]:
        raws.pop()
    base = count - len(raws) + 1
    return [
        Kept(base + n, state)
        for n, raw in enumerate(raws)
        if raw
        for state in (raw.split(b"\r")[-_STATES:] if b"\r" in raw else (raw,))
    ]


def _progress(rows: Sequence[Kept], at: When) -> Told | None:
    """The last line with a number of a step."""
    for row in reversed(rows):
        if _STEP.search(row.raw[:400]):
            return Told(row.number, clean(_words(row.raw[:_SHORT])).replace("\n", " "), at(row.raw))
    return None


def _marks(rows: Sequence[Kept], at: When) -> tuple[tuple[int, float], ...]:
    """The first steps with their times: what all ranks print at the same moment."""
    found: dict[int, float] = {}
    for row in rows:
        if len(found) >= _MARKS:
            break
        if (step := _STEP.search(row.raw[:400])) and (time := at(row.raw)) is not None:
            found.setdefault(int(step[1]), time)
    return tuple(found.items())


class _Device(NamedTuple):
    """What NCCL says of a rank."""

    rank: int | None = None
    host: str = ""
    pid: int = 0
    pci: str = ""
    world: int = 0


def _device(raws: Sequence[bytes]) -> _Device:
    """Of the largest communicator that is named; its ranks are those of the job."""
    best = _Device()
    for raw in raws:
        found = _NCCL.search(raw[:800]) if b"busId" in raw else None
        if found is not None and int(found["world"]) > best.world:
            best = _Device(
                int(found["rank"]),
                found["host"].decode(),
                int(found["pid"]),
                bus(found["bus"].decode()),
                int(found["world"]),
            )
    return best


def _on_one_host(streams: list[Stream], whose: Whose) -> list[Stream]:
    """The true name of the host for all in a file that is named for one place, such as a pod."""
    names = {s.host for s in streams if s.host and s.host != whose.host}
    if not whose.host or len(names) != 1:
        return streams
    name = min(names)
    return [msgspec.structs.replace(s, host=name) for s in streams]


def _all_of(source: Source, shapes: set[bytes]) -> list[Kept]:
    """All lines of these shapes in a log, bounded."""
    found: list[Kept] = []
    number, rest = 1, b""
    with opened(source) as file:
        while (chunk := file.read(_CHUNK)) or rest:
            data = rest + chunk
            at = data.rfind(b"\n") + 1 if chunk else len(data)
            whole, rest = data[:at], data[at:] if chunk else b""
            raws = whole.split(b"\n")
            if whole.endswith(b"\n"):
                raws.pop()
            cut = whole.translate(None, b"0123456789abcdefABCDEF").split(b"\n")
            for i, key in enumerate(cut[: len(raws)]):
                if key in shapes or (len(key) > 200 and shape(raws[i]) in shapes):
                    found.append(Kept(number + i, raws[i][: 2 * _WORDS]))
            number += len(raws)
            if len(found) > _AGAIN:
                break
    return found


def _told(rows: Sequence[Kept], times: _Times) -> tuple[Told, ...]:
    """Telling lines: the first ones and the last ones where there are many."""
    both = list(zip(rows, times, strict=True))
    if len(both) > _TOLD:
        both = [*both[: _TOLD // 2], *both[-_TOLD // 2 :]]
    return tuple(Told(row.number, text, *time) for row, time in both for text in _texts(row.raw))


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


def _step(raws: Sequence[bytes]) -> int | None:
    for raw in reversed(raws):
        if found := _STEP.search(raw[:400]):
            return int(found[1])
    return None


def _paces(raws: Sequence[bytes]) -> tuple[float, ...]:
    """Seconds of the last steps, where they are printed."""
    found = []
    for raw in raws[-2 * _PACES :]:
        if hit := _PACE.search(raw[:600]):
            value, unit = next((hit[n], hit[n + 1]) for n in (1, 3, 5) if hit[n])
            found.append(round(float(value) / (1000 if unit == b"ms" else 1), 6))
    return tuple(found[-_PACES:])


def _clocked(rows: Sequence[Kept], at: When) -> tuple[float, ...]:
    """Seconds of the last steps, by the times of their lines."""
    found: list[float] = []
    before: tuple[int, float] | None = None
    for row in rows[-2 * _PACES :]:
        if (step := _STEP.search(row.raw[:400])) and (time := at(row.raw)) is not None:
            if before is not None and int(step[1]) > before[0] and time > before[1]:
                found.append(round((time - before[1]) / (int(step[1]) - before[0]), 3))
            before = int(step[1]), time
    return tuple(found[-_PACES:])
