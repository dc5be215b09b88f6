"""Accounts for each rank's time (computing, exposed communication, loading, idle), and finds the late rank."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from dtdebug.recorded.profiler_traces.trace_steps import LOADER, OPTIMIZER, RankSteps
from dtdebug.recorded.profiler_traces.traces import Trace, TraceEvent
from dtdebug_taxonomy.model.training import Late

_DEVICE = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
_COMMUNICATION = ("nccl", "gloo:", "mpi:", "ucc:", "rccl", "xccl", "hccl")
"""Prefixes of communication names, on a device and on a host, as in https://github.com/pytorch/pytorch."""
_DISPATCHED = ("c10d::", "_c10d_functional::", "record_param_comms")
"""Host operators that start a collective or wait for it."""
_LATE, _OWN = 0.1, 0.5
"""Share of a step by which others communicate longer, and share of that which the late rank spends elsewhere."""
_PARTS, _FEW, _MOSTLY, _REST = 24, 4, 0.6, 0.1
"""Number of parts of a run, minimum number of parts to judge, share of them in which the rank must be late, and
fraction of the usual length below which a part is only a remainder at an end of the run."""
_STARVED = 0.4
"""Share of every rank's time in the loader from which loading is the bottleneck."""
Interval = tuple[float, float]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """Times of one rank, in seconds."""

    rank: int
    file: str
    span: float
    on: str
    """`device` if kernels were recorded, else `host`."""
    compute: float
    exposed_communication: float
    """Communication without concurrent computation."""
    communication: float
    loader: float
    optimizer: float
    idle: float
    steps: int
    step_seconds: float | None


class RankTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """Data to draw one rank: intervals in microseconds since the rank's own beginning."""

    rank: int
    span: float
    compute: tuple[Interval, ...]
    communication: tuple[Interval, ...]
    loader: tuple[Interval, ...]
    parts: tuple[tuple[float, float, float, float], ...] = ()
    """Per part of the run: its length, and its communication, computing and loading."""


def account(trace: Trace, steps: RankSteps | None) -> tuple[Account, RankTimeline]:
    """Return the account of one rank: of its marked steps, or of everything recorded."""
    events = [e for e in trace.events if e.cat not in ("Trace", "python_function")]
    spans = steps.spans if steps is not None and steps.spans else [(e.ts, e.ts + e.dur) for e in events]
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    inside = [e for e in events if e.ts < end and e.ts + e.dur > begin]
    around = _CommunicationIndex(inside)
    device = any(e.cat == "kernel" for e in inside)
    communication = _union(_spans((e for e in inside if _communicates(e, device=device)), begin, end))
    loader = _union(_spans((e for e in inside if e.name.startswith(LOADER)), begin, end))
    stepping = [e for e in inside if e.name.startswith(OPTIMIZER) and e.cat != "gpu_user_annotation"]
    optimizer = _union(_spans(stepping, begin, end))
    compute = _union(_spans((e for e in inside if _computes(e, device=device) and not around.waits(e)), begin, end))
    if not device:  # a loader's computation counts as loading
        busy_stepping = _spans((e for e in stepping if not around.waits(e)), begin, end)
        compute = _without(_union([*compute, *busy_stepping]), loader)
    exposed = _without(communication, compute)
    busy = _union([*compute, *communication, *([] if device else loader)])
    found = Account(
        rank=trace.rank,
        file=trace.file,
        span=_seconds([(begin, end)]),
        on="device" if device else "host",
        compute=_seconds(compute),
        exposed_communication=_seconds(exposed),
        communication=_seconds(communication),
        loader=_seconds(loader),
        optimizer=_seconds(optimizer),
        idle=_seconds([(begin, end)]) - _seconds(busy),
        steps=steps.count if steps is not None else 0,
        step_seconds=steps.seconds if steps is not None else None,
    )
    line = RankTimeline(
        rank=trace.rank,
        span=end - begin,
        compute=_from(compute, begin),
        communication=_from(communication, begin),
        loader=_from(loader, begin),
        parts=_parts(_bounds(steps, begin, end), communication, compute, loader),
    )
    return found, line


def _bounds(steps: RankSteps | None, begin: float, end: float) -> list[float]:
    """Return boundaries that divide a run alike on all ranks: groups of its steps, else equal parts."""
    marks = list(steps.marks) if steps is not None else []
    if len(marks) > _PARTS:
        marks = marks[:: len(marks) // _PARTS]
    return [begin, *marks, end] if marks else [begin + (end - begin) * n / _PARTS for n in range(_PARTS + 1)]


def _parts(bounds: list[float], *kinds: list[Interval]) -> tuple[tuple[float, float, float, float], ...]:
    found = []
    for begin, end in pairwise(bounds):
        if end > begin:
            clipped = ([(max(a, begin), min(b, end)) for a, b in spans if a < end and b > begin] for spans in kinds)
            communication, compute, loader = (sum(b - a for a, b in spans) for spans in clipped)
            found.append((end - begin, communication, compute, loader))
    return tuple(found)


def late(accounts: list[Account], lines: Sequence[RankTimeline] = ()) -> Late | None:
    """Return the rank that the others wait for, or loaders for which all wait."""
    return (_alone(accounts, lines) or _loader_bound(accounts)) if len(accounts) > 1 else None


def _alone(accounts: list[Account], lines: Sequence[RankTimeline]) -> Late | None:
    """Return the rank that communicates the least and spends that time in another phase.

    If the parts of the run are known, this must hold in most of them: one compilation or save is not lateness.
    """
    one = min(accounts, key=lambda a: a.communication / a.span)
    others = [a for a in accounts if a is not one]
    waits = median(a.communication / a.span for a in others) - one.communication / one.span
    if waits < _LATE:
        return None
    shares = {
        phase: (getattr(one, phase) / one.span, median(getattr(a, phase) / a.span for a in others))
        for phase in ("loader", "compute", "idle")
    }
    phase, (share, usual) = max(shares.items(), key=lambda row: row[1][0] - row[1][1])
    if share - usual < _OWN * waits:
        return None
    if not _lasts(one.rank, phase, lines):
        return None
    name = {"loader": "the loader", "compute": "computing", "idle": "neither computing nor communicating"}[phase]
    return Late(
        ranks=(one.rank,),
        phase="other" if phase == "idle" else phase,
        share=round(share, 3),
        others=round(usual, 3),
        means=f"Rank {one.rank} is late: it spends {share:.0%} of its time in {name}, the others {usual:.0%}; "
        f"they communicate, which is to wait for it, {waits:.0%} of the time longer than it does.",
    )


def _lasts(rank: int, phase: str, lines: Sequence[RankTimeline]) -> bool:
    """True if in most parts of the run the rank communicates less than the others and spends that time in `phase`."""
    if len({len(line.parts) for line in lines}) != 1 or len(lines[0].parts) < _FEW:
        return True
    shares = {line.rank: [_shares(part) for part in line.parts] for line in lines}
    usual = {line.rank: median(part[0] for part in line.parts) for line in lines}
    counted = [n for n in range(len(shares[rank])) if all(x.parts[n][0] >= _REST * usual[x.rank] for x in lines)]
    kept = 0
    for at in counted:
        mine = shares[rank][at]
        others = [rows[at] for other, rows in shares.items() if other != rank]
        waits = median(row["communication"] for row in others) - mine["communication"]
        more = mine[phase] - median(row[phase] for row in others)
        kept += waits >= _LATE and more >= _OWN * waits
    return kept >= _MOSTLY * len(counted) > 0


def _shares(part: tuple[float, float, float, float]) -> dict[str, float]:
    span, communication, compute, loader = part
    busy = min(span, communication + compute + loader)
    seconds = {"communication": communication, "compute": compute, "loader": loader, "idle": span - busy}
    return {name: value / span for name, value in seconds.items()}


def _loader_bound(accounts: list[Account]) -> Late | None:
    shares = [a.loader / a.span for a in accounts]
    if min(shares) < _STARVED:
        return None
    return Late(
        ranks=tuple(a.rank for a in accounts),
        phase="loader",
        share=round(median(shares), 3),
        means=f"All ranks wait for their loaders {median(shares):.0%} of the time: loading can't feed the training.",
    )


def _communicates(event: TraceEvent, *, device: bool) -> bool:
    if device and event.cat != "kernel":
        return False
    return event.name.lower().startswith(_COMMUNICATION)


class _CommunicationIndex:
    """Detects host operators that contain communication; their waiting is not computing."""

    def __init__(self, events: Iterable[TraceEvent]) -> None:
        self._begins: dict[tuple[int | str, int | str], list[float]] = {}
        for e in events:  # in order of time
            if e.cat != "kernel" and e.name.startswith((*_DISPATCHED, *_COMMUNICATION)):
                self._begins.setdefault((e.pid, e.tid), []).append(e.ts)

    def waits(self, event: TraceEvent) -> bool:
        begins = self._begins.get((event.pid, event.tid), [])
        at = bisect_left(begins, event.ts)
        return at < len(begins) and begins[at] < event.ts + event.dur


def _computes(event: TraceEvent, *, device: bool) -> bool:
    if device:
        return event.cat in _DEVICE and not _communicates(event, device=True)
    return event.cat == "cpu_op" and not event.name.startswith((*_DISPATCHED, *_COMMUNICATION))


def _spans(events: Iterable[TraceEvent], begin: float, end: float) -> list[Interval]:
    return [(max(e.ts, begin), min(e.ts + e.dur, end)) for e in events if e.ts < end and e.ts + e.dur > begin]


def _union(spans: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def _without(spans: list[Interval], others: list[Interval]) -> list[Interval]:
    """Return the parts of disjoint, ordered spans that no other span covers."""
    found, place = [], 0
    for begin, end in spans:
        while place < len(others) and others[place][1] <= begin:
            place += 1
        at, i = begin, place
        while i < len(others) and others[i][0] < end:
            if others[i][0] > at:
                found.append((at, others[i][0]))
            at = max(at, others[i][1])
            i += 1
        if at < end:
            found.append((at, end))
    return found


def _seconds(spans: Iterable[Interval]) -> float:
    return round(sum(end - begin for begin, end in spans) / 1e6, 6)


def _from(spans: list[Interval], begin: float) -> tuple[Interval, ...]:
    return tuple((a - begin, b - begin) for a, b in spans)
