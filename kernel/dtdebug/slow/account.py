"""How each rank spent its time: computing, communicating with nothing beside it, loading, idle; and who is late."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

import msgspec

from dtdebug.slow.traces import Trace, TraceEvent
from dtdebug_taxonomy.watched import Late

_DEVICE = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
_COMMUNICATION = ("nccl", "gloo:", "mpi:", "ucc:", "rccl", "xccl", "hccl")
"""How names of what exchanges begin, on a device and on a host; https://github.com/pytorch/pytorch names them so."""
_LOADER, _OPTIMIZER, _STEP = "enumerate(DataLoader)", "Optimizer.step#", "ProfilerStep#"
_LATE, _OWN = 0.1, 0.5
"""Share of a step by which others communicate longer, and the share of that which the late rank spends elsewhere."""
Interval = tuple[float, float]


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """One rank; seconds."""

    rank: int
    file: str
    span: float
    on: str
    """`device` where kernels were recorded, else `host`."""
    compute: float
    exposed_communication: float
    """Communication with no computation beside it."""
    communication: float
    loader: float
    optimizer: float
    idle: float
    steps: int
    step_seconds: float | None


class RankTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """What is drawn of one rank: intervals in microseconds from the rank's own beginning."""

    rank: int
    span: float
    compute: tuple[Interval, ...]
    communication: tuple[Interval, ...]
    loader: tuple[Interval, ...]


def account(trace: Trace) -> tuple[Account, RankTimeline]:
    """The account of one rank."""
    steps = [e for e in trace.events if e.name.startswith(_STEP)]
    steps = list({(e.ts, e.dur): e for e in steps if e.cat != "gpu_user_annotation"}.values())
    events = [e for e in trace.events if e.cat not in ("Trace", "python_function")]
    begin = min(e.ts for e in steps or events)
    end = max(e.ts + e.dur for e in steps or events)
    inside = [e for e in events if e.ts < end and e.ts + e.dur > begin]
    device = any(e.cat == "kernel" for e in inside)
    communication = _union(_spans((e for e in inside if _communicates(e, device=device)), begin, end))
    loader = _union(_spans((e for e in inside if e.name.startswith(_LOADER)), begin, end))
    optimizer = _union(
        _spans((e for e in inside if e.name.startswith(_OPTIMIZER) and e.cat != "gpu_user_annotation"), begin, end)
    )
    compute = _union(_spans((e for e in inside if _computes(e, device=device)), begin, end))
    if not device:  # what a loader computes is loading
        compute = _without(_union([*compute, *optimizer]), loader)
    exposed = _without(communication, compute)
    busy = _union([*compute, *communication, *([] if device else loader)])
    numbers = {e.name for e in steps}
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
        steps=len(numbers),
        step_seconds=_seconds([(begin, end)]) / len(numbers) if numbers else None,
    )
    line = RankTimeline(
        rank=trace.rank,
        span=end - begin,
        compute=_from(compute, begin),
        communication=_from(communication, begin),
        loader=_from(loader, begin),
    )
    return found, line


def late(accounts: list[Account]) -> Late | None:
    """The rank that the others wait for: it communicates the least, and spends that time in a phase of its own."""
    if len(accounts) < 2:
        return None
    one = min(accounts, key=lambda a: a.communication / a.span)
    others = [a for a in accounts if a is not one]
    waits = median(a.communication / a.span for a in others) - one.communication / one.span
    if waits < _LATE:
        return _starved(accounts)
    shares = {
        phase: (getattr(one, phase) / one.span, median(getattr(a, phase) / a.span for a in others))
        for phase in ("loader", "compute", "idle")
    }
    phase, (share, usual) = max(shares.items(), key=lambda row: row[1][0] - row[1][1])
    if share - usual < _OWN * waits:
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


def _starved(accounts: list[Account]) -> Late | None:
    shares = [a.loader / a.span for a in accounts]
    if min(shares) < 0.5:
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


def _computes(event: TraceEvent, *, device: bool) -> bool:
    if device:
        return event.cat in _DEVICE and not _communicates(event, device=True)
    return event.cat == "cpu_op" and not event.name.startswith(("c10d::", "record_param_comms", *_COMMUNICATION))


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
    """The parts of disjoint spans, in order, that no other covers."""
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
