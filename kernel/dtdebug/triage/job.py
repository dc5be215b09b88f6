"""A job from its parts: the first failure over all ranks, those who followed, those who fell silent, the machine.

The lines that tell something are laid out by time as one output, each with its rank; what they mean is left to the one
reader of printed failures.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from dtdebug.triage import machine, pace
from dtdebug.triage.part import Part, Stream
from dtdebug_taxonomy.claims import Claim, texts
from dtdebug_taxonomy.failure import attribution
from dtdebug_taxonomy.failure.attribution import Outcome
from dtdebug_taxonomy.failure.events import Raised
from dtdebug_taxonomy.failure.reading import read
from dtdebug_taxonomy.frames import short, shown_frame
from dtdebug_taxonomy.hardware import Event
from dtdebug_taxonomy.ranks import MOST_RANKS, Verdict, say, spell
from dtdebug_taxonomy.snapshot import Snapshot

_LINES, _FIRST, _EVENTS = 60_000, 64, 256
_END = float("inf")
"""Time of a line that has none."""


class First(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that failed on its own."""

    rank: int | None
    host: str
    time: float | None
    line: int
    file: str
    exception: str
    text: str


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """All that the logs of a job say."""

    ranks: int
    hosts: int
    expected: int = 0
    """Ranks that the job has, where NCCL says so."""
    files: int = 0
    size: int = 0
    unread: tuple[str, ...] = ()
    first: tuple[First, ...] = ()
    cascade: tuple[int, ...] = ()
    cascade_text: str = ""
    cascade_time: float | None = None
    silent: tuple[pace.Silent, ...] = ()
    absent: tuple[int, ...] = ()
    """Ranks below the job's size of which there is no line."""
    slow: tuple[tuple[int, float, float], ...] = ()
    """(rank, seconds of its steps, seconds of the others'), the slowest first."""
    behind: tuple[tuple[int, int, int], ...] = ()
    """(rank, its last step, the last step of most)."""
    hardware: tuple[Event, ...] = ()
    restarts: int = 0
    verdict: Verdict | None = None
    snapshot: Snapshot = Snapshot()
    places: tuple[tuple[str, int], ...] = ()
    """(file, line) of each line of the snapshot's output."""


class _Laid:
    """The telling lines as one output."""

    def __init__(self, streams: Sequence[Stream], events: Sequence[Event]) -> None:
        rows: list[tuple[float, int, int, str, str, int]] = []
        for e in events:
            if e.role == "root" and e.owner != "application":
                who = f"[rank{e.rank}]: " if e.rank is not None else ""
                rows.append((_END if e.time is None else e.time, -1, e.line, f"{who}{e.text}", e.file, e.line))
        for place, stream in enumerate(streams):
            time = stream.first if stream.first is not None else _END
            prefix = _prefix(stream, place)
            for told in stream.told:
                time = told.time if told.time is not None else time
                rows.append((time, place, told.line, f"{prefix}{told.text}", stream.file, told.line))
        rows.sort(key=lambda row: row[:3])
        rows = rows[:_LINES]
        self.text = "\n".join(row[3] for row in rows)
        self.places = tuple((row[4], row[5]) for row in rows)
        self.times = tuple(None if row[0] == _END else row[0] for row in rows)


def _prefix(stream: Stream, place: int) -> str:
    """Who prints: as torch writes a rank; one whose rank is not known is kept apart from the others."""
    if stream.rank is not None:
        return f"[rank{stream.rank}]: "
    if stream.local is not None or stream.pid:
        return f"(log pid={stream.pid or place + 1}, ip=stream-{place}) "
    return ""


def view(part: Part) -> Job:
    """What a part that holds all of a job says of it."""
    streams = [s for s in part.streams if s.rank is None or 0 <= s.rank < MOST_RANKS]
    streams = _placed(streams)
    last = max((s.attempt for s in streams), default=0)
    now = [s for s in streams if s.attempt == last or s.rank is None]
    by_rank = _ranks(now)
    hardware = machine.joined(part.hardware, by_rank)
    laid = _Laid(now, hardware)
    snapshot = Snapshot(output=laid.text, source="the job's logs")
    found = attribution.outcome(read(snapshot))
    verdict = attribution.verdict(snapshot, _exclusive)
    silent = pace.silent(by_rank, verdict, found)
    if verdict is None or verdict.kind == "none" or not verdict.names_ranks:
        verdict = machine.verdict(hardware, by_rank) or pace.of_silent(silent, by_rank) or verdict
    elif set(verdict.culprits) <= set(verdict.waiting):
        verdict = machine.verdict(hardware, by_rank) or verdict
    verdict = _widened(verdict, by_rank, laid) if verdict is not None else None
    first = _first(found, verdict, laid, by_rank, hardware)
    cascade, words, time = _cascade(found, verdict, by_rank, laid)
    world = max((s.world for s in streams), default=0)
    ranks = set(by_rank)
    return Job(
        ranks=len(ranks) or len(now),
        hosts=len({s.host for s in streams if s.host}),
        expected=world,
        files=part.files,
        size=part.size,
        unread=tuple(part.unread),
        first=first,
        cascade=cascade,
        cascade_text=words,
        cascade_time=time,
        silent=silent,
        absent=tuple(sorted(set(range(_size(ranks, world))) - ranks))[:MOST_RANKS],
        slow=pace.slow(by_rank),
        behind=pace.behind(by_rank),
        hardware=hardware[:_EVENTS],
        restarts=last,
        verdict=verdict,
        snapshot=msgspec.structs.replace(snapshot, verdict=verdict),
        places=laid.places,
    )


def _exclusive(file: str, one: int, other: int) -> bool | None:
    return None


def _placed(streams: Sequence[Stream]) -> list[Stream]:
    """A local rank is the rank where all logs are of one node: one folder of torchrun's, or one host."""
    nameless = [s for s in streams if s.rank is None and s.local is not None]
    nodes = {(s.host, s.file.rpartition("attempt_")[0]) for s in nameless}
    known = {s.local: s.rank for s in streams if s.rank is not None and s.local is not None}
    clash = any(local != rank for local, rank in known.items())
    if not nameless or len(nodes) > 1 or clash:
        return list(streams)
    return [msgspec.structs.replace(s, rank=s.local) if s.rank is None else s for s in streams]


def _ranks(streams: Sequence[Stream]) -> dict[int, Stream]:
    """Rank -> its streams as one: standard output and standard error are two files of one rank."""
    found: dict[int, Stream] = {}
    for s in streams:
        if s.rank is None:
            continue
        other = found.get(s.rank)
        if other is None:
            found[s.rank] = s
            continue
        later = s if (s.last or 0.0) >= (other.last or 0.0) else other
        found[s.rank] = msgspec.structs.replace(
            later,
            host=s.host or other.host,
            pid=s.pid or other.pid,
            pci=s.pci or other.pci,
            kind=f"{other.kind}{s.kind}",
            first=min((t for t in (s.first, other.first) if t is not None), default=None),
            step=max((n for n in (s.step, other.step) if n is not None), default=None),
            paces=s.paces or other.paces,
        )
    return found


def _size(ranks: set[int], world: int) -> int:
    """Ranks that the job must have: as NCCL says, else as many as the greatest number that was seen."""
    return min(max(world, max(ranks, default=-1) + 1), MOST_RANKS)


def _widened(verdict: Verdict, by_rank: dict[int, Stream], laid: _Laid) -> Verdict:
    """With the ranks whose telling lines are like those of the ranks that were read, and with true places."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for what, ranks in (("culprit", verdict.culprits), ("waits", verdict.waiting)):
        for rank in ranks:
            if rank in by_rank and by_rank[rank].kind:
                kinds[by_rank[rank].kind].add(what)
    culprits, waiting = set(verdict.culprits), set(verdict.waiting)
    for rank, s in by_rank.items():
        if rank in culprits or rank in waiting or s.told:
            continue
        of = kinds.get(s.kind, set())
        if of == {"culprit"}:
            culprits.add(rank)
        elif "waits" in of:
            waiting.add(rank)
    claims = tuple(_moved(claim, laid.places) for claim in verdict.claims)
    more, fewer = spell(tuple(sorted(culprits)), 8), spell(verdict.culprits, 8)
    summary = verdict.summary
    if culprits != set(verdict.culprits):
        summary = summary.replace(f"{fewer[:1].upper()}{fewer[1:]}", f"{more[:1].upper()}{more[1:]}", 1)
    before, after = verdict.waiting, tuple(sorted(waiting - culprits))
    if after != before and before:
        summary = summary.replace(say(before, "fail"), say(after, "fail"), 1)
    return msgspec.structs.replace(
        verdict,
        culprits=tuple(sorted(culprits)),
        waiting=after,
        summary=summary,
        claims=claims,
        evidence=texts(claims) or verdict.evidence,
    )


def _moved(claim: Claim, places: Sequence[tuple[str, int]]) -> Claim:
    record = claim.record
    if record.source != "output" or record.path or not 0 < record.line <= len(places):
        return claim
    file, line = places[record.line - 1]
    return msgspec.structs.replace(claim, record=msgspec.structs.replace(record, path=file, line=line))


def _first(
    found: Outcome,
    verdict: Verdict | None,
    laid: _Laid,
    by_rank: dict[int, Stream],
    hardware: Sequence[Event],
) -> tuple[First, ...]:
    """The ranks that failed on their own, the earliest first; those that the verdict accuses before the others."""
    accused = set(verdict.culprits) if verdict is not None else set()
    rows = [_row(r, laid, by_rank) for r in found.own]
    seen = {row.rank for row in rows}
    rows.sort(key=lambda row: row.rank not in accused if accused else False)
    if verdict is None or not accused or accused & seen:
        return tuple(rows[:_FIRST])
    ends = {e.rank: e for e in found.exits}
    told = {e.rank: e for e in reversed(hardware) if e.rank is not None and e.role == "root"}
    for rank in sorted(accused)[:_FIRST]:
        s = by_rank.get(rank)
        end, event = ends.get(rank), told.get(rank)
        file, line = _place(laid, end.line) if end is not None else (s.file, s.line) if s is not None else ("", 0)
        time = _time(laid, end.line) if end is not None else event.time if event is not None else s.last if s else None
        words = verdict.summary if event is None else f"{event.code}: {event.means}"
        rows.insert(0, First(
            rank=rank, host=s.host if s else event.host if event else "", time=time, line=line, file=file,
            exception="" if end is None else end.signal or f"exit code {end.code}", text=words,
        ))  # fmt: skip
    return tuple(sorted(rows, key=lambda row: row.rank not in accused)[:_FIRST])


def _row(raised: Raised, laid: _Laid, by_rank: dict[int, Stream]) -> First:
    file, line = _place(laid, raised.line)
    frame = shown_frame(raised.frames)
    where = f", {short(frame.file)}:{frame.line} in {frame.function}" if frame is not None else ""
    s = by_rank.get(raised.rank) if raised.rank is not None else None
    time = _time(laid, raised.line)
    return First(
        rank=raised.rank,
        host=s.host if s is not None else "",
        time=time if time is not None else s.last if s is not None else None,
        line=line,
        file=file,
        exception=raised.type.rpartition(".")[2],
        text=f"{raised.text[:300]}{where}",
    )


def _place(laid: _Laid, line: int) -> tuple[str, int]:
    return laid.places[line - 1] if 0 < line <= len(laid.places) else ("", 0)


def _time(laid: _Laid, line: int) -> float | None:
    return laid.times[line - 1] if 0 < line <= len(laid.times) else None


def _cascade(
    found: Outcome, verdict: Verdict | None, by_rank: dict[int, Stream], laid: _Laid
) -> tuple[tuple[int, ...], str, float | None]:
    """Ranks that failed as a consequence, in which words, and when that began."""
    accused = set(verdict.culprits) if verdict is not None else set()
    ranks = set(verdict.waiting) if verdict is not None else set()
    if accused or found.echoes or not found.own:
        ranks |= {rank for rank, s in by_rank.items() if s.kind}
    ranks -= accused
    ranks -= {r.rank for r in found.own if r.rank is not None} - (set(verdict.waiting) if verdict else set())
    words = Counter(r.text[:160] for r in found.echoes if r.rank in ranks or r.rank is None)
    times = [s.first for rank, s in by_rank.items() if rank in ranks and s.first is not None]
    text = words.most_common(1)[0][0] if words else ""
    if not text and ranks:
        text = next((line for line in _spoken(laid) if line), "")
    return tuple(sorted(ranks)), text, min(times, default=None)


def _spoken(laid: _Laid) -> Iterable[str]:
    """Bodies of telling lines that name a time-out of a collective."""
    for line in laid.text.split("\n"):
        at = line.find("Watchdog caught collective")
        if at >= 0:
            yield line[at : at + 160]
