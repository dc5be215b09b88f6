"""One log to its streams: who prints in it, from when to when, and the lines that tell something."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from dtdebug.clean import clean
from dtdebug.logs import reader
from dtdebug.logs.opened import Source, opened
from dtdebug.logs.reader import LogError
from dtdebug.logs.shapes import Kept, Shapes
from dtdebug.triage.clock import when
from dtdebug.triage.judge import Judge, shape
from dtdebug.triage.names import Whose
from dtdebug.triage.part import Part, Stream, Told
from dtdebug_taxonomy.failure import grammar, lines
from dtdebug_taxonomy.failure.lines import Line
from dtdebug_taxonomy.hardware import Event, bus, parse

_CHUNK = 1 << 20
_MOST = 256 << 10
"""Bytes of lines that are kept of one log."""
_TAIL, _SHARED_TAIL = 32 << 10, 4 << 20
"""Bytes of the end in which the last line of one who prints is looked for: alone in a file, or one of many."""
_TOLD, _WORDS = 240, 1_000
"""Telling lines of a stream, and characters of each."""
_AGAIN = 400_000
"""Lines of many ranks in one file that are looked at once more for who else printed them."""
_SAYS = re.compile(r"\[(?:PG (?:ID )?0 (?:PG GUID 0)?(?:\(default_pg\) )?)?Rank (\d{1,7})\] ")
_STEP = re.compile(rb"(?i)\b(?:step|iter(?:ation)?|batch)s?\b['\"]?[ _:=#\[(]{0,4}(\d{1,9})\b")
_PACE = re.compile(
    rb"(?i)(?:(?:step|iter(?:ation)?|batch|elapsed)[ _-]?time[^0-9:=]{0,40}[:=] {0,3}"
    rb"(\d{1,6}(?:\.\d{1,9})?) {0,2}(ms|s)?\b"
    rb"|\b(\d{1,5}\.\d{1,6}) ?(ms|s)/(?:it|step|batch))"
)
_PACES = 24
_NCCL = re.compile(
    rb"(?P<host>[\w.-]{1,100}):(?P<pid>\d{1,9}):\d{1,9} \[\d{1,3}\] NCCL INFO .{0,200}"
    rb"\brank (?P<rank>\d{1,7}) nranks (?P<world>\d{1,7}) cudaDev \d{1,3} (?:nvmlDev \d{1,3} )?"
    rb"busId (?P<bus>[0-9a-f]{3,12})"
)
"""What NCCL says of a rank when it makes a communicator, with `NCCL_DEBUG=INFO`."""


def part_of(sources: Sequence[Source], whose: Sequence[Whose]) -> Part:
    """The part that these logs make; one that can't be read is named in it."""
    part, judge = Part(), Judge()
    for source, names in zip(sources, whose, strict=True):
        try:
            one(part, judge, source, names)
        except (OSError, EOFError, ValueError) as error:  # truncated archives say EOFError, what is no text LogError
            why = str(error) if isinstance(error, LogError) else f"{source.name}: {_why(error)}"
            part.unread.append(clean(why)[:300])
        else:
            part.files += 1
            part.read.append(source.name)
    return part


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def one(part: Part, judge: Judge, source: Source, whose: Whose) -> None:
    """Adds one log to a part."""
    log = Log()
    cut_off = None
    with opened(source) as file:
        try:
            while chunk := file.read(_CHUNK):
                log.add(chunk, source.name)
        except (OSError, EOFError) as error:
            if not log.size:
                raise
            cut_off = error
    log.end()
    add(part, judge, log, source, whose)
    if cut_off is not None:  # what came before is as good as ever
        raise OSError(0, f"after {log.size:,} bytes: {_why(cut_off)}")


class Log:
    """What is kept of one log while it is read."""

    def __init__(self) -> None:
        self.shapes = Shapes(most=_MOST, choose=reader.telling)
        self.size = 0
        self._runs: deque[bytes] = deque()
        self._kept = 0
        """Bytes of those runs."""
        self._rest = b""

    @property
    def tail(self) -> bytes:
        """The end of the log, in whole lines but for the first."""
        return b"".join(self._runs)[-_SHARED_TAIL:]

    def add(self, chunk: bytes, name: str) -> None:
        """Takes the next bytes.

        Raises:
            LogError: it is not text.

        """
        if not self.size:
            reader.refuse_binary(chunk[:8192], name)
        self.size += len(chunk)
        data = self._rest + chunk if self._rest else chunk
        at = data.rfind(b"\n") + 1
        whole, self._rest = (data, b"") if at == len(data) else (data[:at], data[at:])
        if len(self._rest) > _CHUNK:
            self._rest = self._rest[-_TAIL:]
        if whole:
            self._take(whole)

    def end(self) -> None:
        """Nothing comes any more: the last line may have no end."""
        if self._rest:
            self._take(self._rest)
            self._rest = b""

    def _take(self, run: bytes) -> None:
        self.shapes.take(run)
        self._runs.append(run)
        self._kept += len(run)
        while self._kept - len(self._runs[0]) >= _SHARED_TAIL:
            self._kept -= len(self._runs.popleft())


def add(part: Part, judge: Judge, log: Log, source: Source, whose: Whose) -> None:
    """Adds what was kept of one log to a part."""
    kept = log.shapes.kept
    part.size += log.size
    year = datetime.fromtimestamp(source.time, UTC).year if source.time else datetime.now(UTC).year
    judge.learn(kept)
    telling = [row for row in kept if judge.tells(row.raw)]
    part.hardware += _events(telling, source, whose, year)
    if log.shapes.dropped:
        part.unread.append(f"{source.name}: {log.shapes.dropped} lines of unlike shapes that name no failure")
    if whose.machine:
        return
    rows = _read(kept, whose)
    text = _Text(source, whose, kept, telling, log.tail, log.shapes.lines, year)
    if len({line.who for line in rows if line.who != ("", None, 0)}) > 1:
        part.streams += _on_one_host(list(_shared(judge, text)), whose)
    else:
        part.streams.append(_alone(judge, text, rows))


def _read(kept: Sequence[Kept], whose: Whose) -> list[Line]:
    source = f"attempt_{whose.attempt}/{whose.local}/stderr.log" if whose.local is not None else ""
    text = "\n".join(row.raw.decode("utf-8", "replace").replace("\n", " ") for row in kept)
    return [_named(line) for line in lines.read(text, source=source)]


def _named(line: Line) -> Line:
    """With the rank that an older torch says in the message alone, where its group is the job's."""
    if line.rank is not None or not line.body.startswith(("[Rank ", "[PG ")):
        return line
    found = _SAYS.match(line.body)
    return line._replace(rank=int(found[1])) if found else line


class _Text(NamedTuple):
    """What is kept of one log."""

    source: Source
    whose: Whose
    kept: Sequence[Kept]
    telling: Sequence[Kept]
    tail: bytes
    lines: int
    year: int


def _alone(judge: Judge, text: _Text, rows: Sequence[Line]) -> Stream:
    """The one who prints in a file: the prefixes of its lines know better than its name."""
    source, whose, kept, telling, tail, count, year = text
    rank = next((line.rank for line in rows if line.rank is not None), None)
    host = next((line.host for line in rows if line.host), "")
    last = tail[-_TAIL:].replace(b"\r", b"\n").split(b"\n")
    first = next((t for row in telling if (t := when(row.raw, year)) is not None), None)
    kind = _kind(telling)
    device = _device([row.raw for row in kept])
    if rank is None and whose.rank is None:
        rank = device.rank
    return Stream(
        file=source.name,
        rank=whose.rank if rank is None else rank,
        local=whose.local,
        host=clean(device.host or host or whose.host)[:100],
        attempt=whose.attempt,
        pid=device.pid,
        pci=device.pci,
        world=device.world,
        began=next((t for row in kept if (t := when(row.raw, year)) is not None), None),
        last=next((t for raw in reversed(last) if (t := when(raw, year)) is not None), None),
        line=count,
        step=_step(last),
        first=first,
        kind=kind,
        told=_told(telling, year) if judge.is_example(kind, first) else (),
        paces=_paces(last),
    )


def _shared(judge: Judge, text: _Text) -> Iterable[Stream]:
    """Those who print in one file. What many of them print is looked up once more, for only some of it was kept."""
    source, whose, kept, _, tail, _, year = text
    common = {key for key in map(shape, (row.raw for row in kept)) if judge.telling.get(key)}
    common |= {shape(row.raw) for row in kept if b"busId" in row.raw and _NCCL.search(row.raw[:800])}
    telling = _all_of(source, common) if source.path != "-" else [row for row in kept if judge.tells(row.raw)]
    base = _tail_number(kept, tail)
    ends = [Kept(base + n, raw) for n, raw in enumerate(tail.split(b"\n")) if raw]
    both = sorted({row.number: row for row in (*kept, *telling, *ends)}.values())
    found = _read(both, whose)
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
        first_told = next((t for row in mine if (t := when(row.raw, year)) is not None), None)
        kind = _kind(mine)
        device = _device([row.raw for row in lined])
        yield Stream(
            file=source.name,
            rank=first.rank,
            local=first.local,
            host=clean(device.host or next((line.host for line, _ in rows if line.host), "") or whose.host)[:100],
            attempt=whose.attempt,
            pid=first.pid or device.pid,
            pci=device.pci,
            world=device.world,
            began=next((t for row in lined[:200] if (t := when(row.raw, year)) is not None), None),
            last=next((t for row in reversed(lined[-200:]) if (t := when(row.raw, year)) is not None), None),
            line=lined[-1].number,
            step=_step([row.raw for row in lined[-100:]]),
            first=first_told,
            kind=kind,
            told=_told(mine, year) if judge.is_example(kind, first_told) else (),
            paces=_paces([row.raw for row in lined[-100:]]),
        )


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


def _tail_number(kept: Sequence[Kept], tail: bytes) -> int:
    """The number of the first line of the tail: by the last line that was kept and is in it."""
    for row in reversed(kept):
        at = tail.rfind(row.raw[:500]) if row.raw else -1
        if at >= 0 and tail.count(row.raw[:500]) == 1:
            return row.number - tail.count(b"\n", 0, at)
    return max((row.number for row in kept), default=0) + 1


def _told(rows: Sequence[Kept], year: int) -> tuple[Told, ...]:
    """Telling lines: the first ones and the last ones where there are many."""
    if len(rows) > _TOLD:
        rows = [*rows[: _TOLD // 2], *rows[-_TOLD // 2 :]]
    return tuple(
        Told(row.number, clean(row.raw.decode("utf-8", "replace"))[:_WORDS].replace("\n", " "), when(row.raw, year))
        for row in rows
    )


def _kind(rows: Iterable[Kept]) -> str:
    """The same for streams whose telling lines have the same shapes."""
    shapes = sorted({shape(row.raw) for row in rows})
    return hashlib.blake2b(b"\n".join(shapes), digest_size=8).hexdigest() if shapes else ""


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
            value, unit = (hit[1], hit[2]) if hit[1] else (hit[3], hit[4])
            found.append(round(float(value) / (1000 if unit == b"ms" else 1), 6))
    return tuple(found[-_PACES:])


def _events(rows: Iterable[Kept], source: Source, whose: Whose, year: int) -> Iterable[Event]:
    for row in rows:
        text = clean(row.raw.decode("utf-8", "replace"))
        event = parse(text)
        if event is not None:
            told = grammar.told(text)
            yield event.placed(
                host=told.host or whose.host,
                time=when(row.raw, year),
                file=source.name,
                line=row.number,
                text=told.body[:300],
            )
