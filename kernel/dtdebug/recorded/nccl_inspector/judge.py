"""Judges the collectives of all ranks: who comes late to them, which communicator is slow, and since when.

A rank that comes to a collective early waits inside it, so its time is long; the last one only transfers. The least
time of a collective is therefore what the transfer took, and what the others spent beyond it they waited for the last.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from dtdebug.recorded.nccl_inspector.read import Record
from dtdebug_taxonomy.model.sizes import spell_bytes

_LEAST = 5
"""Collectives from which something is said of them."""
_WAITED, _OF_THEM = 0.3, 0.6
"""Share of the time in collectives that the others wait for one rank, and share of these in which it is the last."""
_GRAVE = 1e-3
"""Seconds that they wait at least for it, in the median."""
_SLOW = 0.6
"""Bandwidth, as a share of that of its peers or of its own beginning, below which a communicator is slow."""
_PEERS = 2
_SMALL = 1 << 20
"""Bytes below which latency and not bandwidth is measured."""
_BY_HOST = "collective_cpu"
"""Source of times that begin when a collective is enqueued: they show no wait."""


class Key(NamedTuple):
    """One collective of a communicator."""

    communicator: str
    operation: str
    number: int


class Load(NamedTuple):
    """Collectives that can be compared."""

    operation: str
    size: int
    ranks: int
    nodes: int


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """One rank of a communicator."""

    communicator: str
    rank: int
    host: str = ""
    pid: int = 0
    waits: float = 0.0
    """Share of its time in collectives that it waited for the last rank."""
    last: float = 0.0
    """Share of the collectives to which it came last."""


class Communicator(msgspec.Struct, frozen=True, kw_only=True):
    """One communicator, with what its most frequent collective reached."""

    id: str
    ranks: int
    nodes: int
    recorded: tuple[int, ...]
    """Ranks of which there are records."""
    collectives: int
    """Collectives that more than one rank recorded."""
    operation: str
    size: int
    busbw: float
    """Median of their bandwidths in GB/s without the wait for the last rank."""
    hosts: tuple[str, ...] = ()


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Findings, the gravest first."""

    kind: str
    """`late_rank`, `slow_communicator` or `slower_since`."""
    communicator: str
    means: str
    rank: int | None = None
    host: str = ""
    share: float = 0.0
    """Share of the time that the others wait, or of the bandwidth that is left."""


class Verdict(NamedTuple):
    """Result of a recording."""

    held: list[Held]
    members: list[Member]
    communicators: list[Communicator]
    notes: list[str]


def judge(records: Iterable[Record]) -> Verdict:
    """Return what is slow, the gravest first, with the figures that it rests on."""
    collectives: dict[Key, dict[int, Record]] = defaultdict(dict)
    for record in records:
        seen = record.coll_perf
        collectives[Key(record.header.id, seen.coll, seen.coll_sn)][record.header.rank] = record
    by: dict[str, list[dict[int, Record]]] = defaultdict(list)
    for key, ranks in collectives.items():
        by[key.communicator].append(ranks)
    held: list[Held] = []
    members: list[Member] = []
    communicators: list[Communicator] = []
    notes: list[str] = []
    for name, rows in by.items():
        shared = [row for row in rows if len(row) > 1 and not any(_is_of_host(record) for record in row.values())]
        if any(_is_of_host(record) for row in rows for record in row.values()):
            notes.append(f"communicator {name}: times taken when a collective was enqueued show no wait; left out")
        found = _members(name, rows, shared)
        members += found
        held += _late(name, found, shared)
        communicators.append(_communicator(name, rows, shared))
    held += _slow_communicators(by, communicators)
    held += [row for name, rows in by.items() if (row := _slower_since(name, rows)) is not None]
    return Verdict(held, members, communicators, notes)


def _is_of_host(record: Record) -> bool:
    return record.coll_perf.coll_timing_source == _BY_HOST


def _times(row: Mapping[int, Record]) -> dict[int, float]:
    return {rank: record.coll_perf.coll_exec_time_us for rank, record in row.items()}


def _members(name: str, rows: Sequence[Mapping[int, Record]], shared: Sequence[Mapping[int, Record]]) -> list[Member]:
    total, waited = defaultdict[int, float](float), defaultdict[int, float](float)
    last, took_part = Counter[int](), Counter[int]()
    for row in shared:
        times = _times(row)
        least = min(times, key=times.__getitem__)
        last[least] += 1
        for rank, time in times.items():
            took_part[rank] += 1
            total[rank] += time
            waited[rank] += time - times[least]
    known = {rank: record.metadata for row in rows for rank, record in row.items()}
    return [
        Member(
            communicator=name,
            rank=rank,
            host=known[rank].hostname,
            pid=known[rank].pid,
            waits=round(waited[rank] / total[rank], 3) if total[rank] else 0.0,
            last=round(last[rank] / took_part[rank], 3) if took_part[rank] else 0.0,
        )
        for rank in sorted(known)
    ]


def _late(name: str, members: Sequence[Member], shared: Sequence[Mapping[int, Record]]) -> list[Held]:
    """Return the rank that the others of a communicator wait for in most of its collectives."""
    if not members:
        return []
    suspect = max(members, key=lambda member: member.last)
    rows = [row for row in shared if suspect.rank in row]
    if len(rows) < _LEAST or suspect.last < _OF_THEM:
        return []
    waits: list[float] = []
    total = 0.0
    for row in rows:
        times = _times(row)
        others = [time for rank, time in times.items() if rank != suspect.rank]
        waits.append(max(0.0, median(others) - times[suspect.rank]))
        total += median(others)
    share, typical = round(sum(waits) / total, 3), median(waits) / 1e6
    if share < _WAITED or typical < _GRAVE:
        return []
    size = next(iter(rows[0].values())).header.n_ranks
    recorded = f"{len(members)} recorded ranks{f' of {size}' if size > len(members) else ''}"
    means = (
        f"Rank {suspect.rank} of communicator {name}{_on(suspect.host)} is late: in {suspect.last:.0%} of "
        f"{len(rows):,} collectives it comes last of {recorded}, and the others wait {_spell(typical)} for it "
        f"({share:.0%} of their time in them)."
    )
    held = Held(kind="late_rank", communicator=name, rank=suspect.rank, host=suspect.host, share=share, means=means)
    return [held]


def _best(row: Mapping[int, Record]) -> Record:
    """Return the record of the rank that came last: its time has no wait in it."""
    return min(row.values(), key=lambda record: record.coll_perf.coll_exec_time_us)


def _is_telling(row: Mapping[int, Record], best: Record) -> bool:
    """True if a collective shows the bandwidth: it is large, and most of its ranks recorded it.

    Each rank samples, so that hardly a collective of a large communicator is recorded by all.
    """
    return 2 * len(row) > best.header.n_ranks and _load(best).size >= _SMALL and not _is_of_host(best)


def _load(record: Record) -> Load:
    seen, head = record.coll_perf, record.header
    return Load(seen.coll, seen.coll_msg_size_bytes, head.n_ranks, head.nnodes)


def _communicator(
    name: str, rows: Sequence[Mapping[int, Record]], shared: Sequence[Mapping[int, Record]]
) -> Communicator:
    best = [_best(row) for row in rows]
    frequent, _ = Counter(map(_load, best)).most_common(1)[0]
    speeds = [record.coll_perf.coll_busbw_gbs for record in best if _load(record) == frequent]
    hosts = {record.metadata.hostname for row in rows for record in row.values()}
    return Communicator(
        id=name,
        ranks=frequent.ranks,
        nodes=frequent.nodes,
        recorded=tuple(sorted({rank for row in rows for rank in row})),
        collectives=len(shared),
        operation=frequent.operation,
        size=frequent.size,
        busbw=round(median(speeds), 3),
        hosts=tuple(sorted(hosts)),
    )


def _slow_communicators(by: Mapping[str, Sequence[Mapping[int, Record]]], known: Sequence[Communicator]) -> list[Held]:
    """Return communicators whose bandwidth is far below that of others with the same collective, size and layout."""
    speeds: dict[Load, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, rows in by.items():
        for row in rows:
            best = _best(row)
            if _is_telling(row, best):
                speeds[_load(best)][name].append(best.coll_perf.coll_busbw_gbs)
    hosts = {row.id: row.hosts for row in known}
    found: dict[str, Held] = {}
    for load, of in speeds.items():
        typical = {name: median(values) for name, values in of.items() if len(values) >= _LEAST}
        for name, speed in typical.items():
            others = [value for other, value in typical.items() if other != name]
            if len(others) < _PEERS or not (usual := median(others)) or speed >= _SLOW * usual or name in found:
                continue
            means = (
                f"Communicator {name}{_on(', '.join(hosts.get(name, ())[:4]))} is slow: {load.operation} of "
                f"{spell_bytes(load.size)} reaches {speed:.3g} GB/s there, and {usual:.3g} GB/s in {len(others)} "
                f"others of {load.ranks} ranks on {load.nodes} node{'s' * (load.nodes != 1)}."
            )
            found[name] = Held(kind="slow_communicator", communicator=name, share=round(speed / usual, 3), means=means)
    return list(found.values())


def _slower_since(name: str, rows: Sequence[Mapping[int, Record]]) -> Held | None:
    """Return from where on a communicator is slower than it was."""
    series: dict[Load, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        best = _best(row)
        if _is_telling(row, best):
            series[_load(best)].append((best.coll_perf.coll_sn, best.coll_perf.coll_busbw_gbs))
    for load, values in series.items():
        values.sort()
        if len(values) < 4 * _LEAST:
            continue
        at = _change([speed for _, speed in values])
        if at is None:
            continue
        before, after = median(v for _, v in values[:at]), median(v for _, v in values[at:])
        means = (
            f"Communicator {name} is slower since {load.operation} #{values[at][0]:,}: {after:.3g} GB/s for "
            f"{spell_bytes(load.size)}, {before:.3g} GB/s before."
        )
        return Held(kind="slower_since", communicator=name, share=round(after / before, 3), means=means)
    return None


def _change(speeds: Sequence[float]) -> int | None:
    """Return the place from which speeds stay low, if they do to the end."""
    high, low = median(speeds[: len(speeds) // 4]), median(speeds[-_LEAST:])
    if not high or low >= _SLOW * high:
        return None
    limit = (high + low) / 2
    best, place, score = 0, 0, 0
    for at, speed in enumerate(speeds):  # the place with most high values before it and low ones behind it
        score += 1 if speed > limit else -1
        if score > best:
            best, place = score, at + 1
    behind = speeds[place:]
    if len(behind) < _LEAST or sum(speed <= limit for speed in behind) < 0.9 * len(behind):
        return None
    return place if place >= _LEAST else None


def _on(host: str) -> str:
    return f" ({host})" if host else ""


def _spell(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
