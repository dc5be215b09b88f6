"""Counts the steps of a trace, by the first method that works for all ranks.

`profiler.step()` marks them, but many programs never call it. Then the program's own annotations that name a step are
used, else its optimizers, its loaders, or the operators that it repeats. All ranks are counted with the same method.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from statistics import median

import msgspec

from dtdebug.recorded.profiler_traces.traces import Trace, TraceEvent

PROFILER, OPTIMIZER, LOADER = "ProfilerStep#", "Optimizer.step#", "enumerate(DataLoader)"
_BACKWARD = "autograd::engine::evaluate_function"
_OWN = re.compile(r"(?:^|[^a-z])(?:steps?|iter(?:ation)?s?|batch)(?:[^a-z]|$)", re.IGNORECASE)
_LIBRARY = re.compile(
    r"Optimizer\.|enumerate\(|DistributedDataParallel|FSDP|(?:gloo|nccl|mpi|ucc|xccl):|Torch-Compiled|##? Call "
)
"""Prefixes of PyTorch's own annotations."""
_MODEL = re.compile(r"aten::.{0,40}(?:mm|conv|linear|embedding|attention|norm)")
"""Operators that models use, unlike loaders and samplers."""
_NUMBERS = re.compile(r"\d+")
_MOST = 2_000_000
_REPEATS = 3
"""Minimum number of repetitions of a pattern of operators."""


class RankSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of one rank."""

    count: int
    seconds: float | None
    """Seconds per step, from the first to the last; None for a single step."""
    spans: tuple[tuple[float, float], ...] = ()
    """Their beginnings and ends, if they are marked."""
    marks: tuple[float, ...] = ()
    """Time of each, at the same place in all steps."""


def steps(traces: list[Trace]) -> tuple[dict[int, RankSteps], str]:
    """Return the steps of each rank, and the method of counting; both empty if no method works for all ranks."""
    ways = (
        ("calls of profiler.step()", _profiler_steps),
        ("annotations of the program that name them", _annotated_steps),
        ("optimizer steps", _optimizer),
        ("backward passes", _backward),
        ("iterations of a data loader", _loader),
        ("operators that repeat", _operator_steps),
    )
    for name, way in ways:
        found = {}
        for trace in traces:
            one = way(trace.events)
            if one is None:
                break
            found[trace.rank] = one
        else:
            return found, name
    return {}, ""


def _profiler_steps(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    marked = [e for e in events if e.name.startswith(PROFILER) and e.cat != "gpu_user_annotation"]
    spans = sorted({(e.ts, e.ts + e.dur) for e in marked})
    if not spans:
        return None
    number = len({e.name for e in marked})
    return RankSteps(
        count=number,
        seconds=(spans[-1][1] - spans[0][0]) / 1e6 / number,
        spans=tuple(spans),
        marks=tuple(span[0] for span in spans),
    )


def _annotated_steps(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    """Count by the annotation name that takes the most time among those that repeat without overlap."""
    named: dict[str, list[TraceEvent]] = {}
    for e in events:
        if e.cat == "user_annotation" and _OWN.search(e.name.replace("_", " ")) and not _LIBRARY.match(e.name):
            named.setdefault(_NUMBERS.sub("#", e.name), []).append(e)
    apart = [
        rows for rows in named.values() if len(rows) > 1 and all(a.ts + a.dur <= b.ts + 1 for a, b in pairwise(rows))
    ]
    longest = max(apart, key=lambda rows: sum(e.dur for e in rows), default=None)
    return _of([e.ts for e in longest]) if longest else None


def _optimizer(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    """Count optimizer steps; several of them after one backward pass count once."""
    ends: list[float] = []
    seen = any(e.name.startswith(_BACKWARD) for e in events)
    backward = True
    for e in events:
        if e.name.startswith(_BACKWARD):
            backward = True
        elif e.name.startswith(OPTIMIZER) and e.cat != "gpu_user_annotation":
            if backward or not ends or not seen:
                ends.append(e.ts + e.dur)
            else:
                ends[-1] = e.ts + e.dur
            backward = False
    return _of(ends)


def _loader(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    """Count loader iterations followed by a model's computation: the last of an epoch is empty."""
    begins: list[float] = []
    waiting: TraceEvent | None = None
    for e in events:
        if e.name.startswith(LOADER) and e.cat != "gpu_user_annotation":
            waiting = e
        elif waiting is not None and e.ts >= waiting.ts + waiting.dur and (e.cat == "kernel" or _MODEL.match(e.name)):
            begins.append(waiting.ts)
            waiting = None
    return _of(begins)


def _backward(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    return _pattern([e for e in events if e.name.startswith(_BACKWARD)])


def _operator_steps(events: tuple[TraceEvent, ...]) -> RankSteps | None:
    """Count by the operators of the busiest thread."""
    kind = "cpu_op" if any(e.cat == "cpu_op" for e in events) else "kernel"
    threads = Counter((e.pid, e.tid) for e in events if e.cat == kind)
    if not threads:
        return None
    busiest = threads.most_common(1)[0][0]
    return _pattern([e for e in events if e.cat == kind and (e.pid, e.tid) == busiest])


def _pattern(events: list[TraceEvent]) -> RankSteps | None:
    """Count by an operator that occurs once per repetition at the end of the run; the first repetitions may differ."""
    rows = events[-_MOST:]
    names = [e.name for e in rows]
    tail = names[len(names) // 4 :]
    length = _period(tail)
    if length is None:
        return None
    once = [name for name, count in Counter(tail[-length:]).items() if count == 1]
    if not once:
        return None
    totals = Counter(names)
    usual = median(totals[name] for name in once)
    anchor = min(once, key=lambda name: (abs(totals[name] - usual), name))
    return _of([e.ts for e in rows if e.name == anchor])


def _period(names: list[str]) -> int | None:
    """Return the length of what the list repeats at least `_REPEATS` times; its beginning may be cut off.

    Uses the borders of Knuth, Morris and Pratt, in linear time.
    """
    border = [0] * len(names)
    for at in range(1, len(names)):
        length = border[at - 1]
        while length and names[at] != names[length]:
            length = border[length - 1]
        border[at] = length + (names[at] == names[length])
    period = len(names) - border[-1] if names else 0
    return period if 1 < period <= len(names) // _REPEATS else None


def _of(times: list[float]) -> RankSteps | None:
    if not times:
        return None
    seconds = (times[-1] - times[0]) / 1e6 / (len(times) - 1) if len(times) > 1 else None
    return RankSteps(count=len(times), seconds=seconds, marks=tuple(times))
