"""Reads traces or records of NCCL's Inspector, accounts for the ranks' time, and formats the result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.privacy.sanitize import one_line
from dtdebug.recorded.nccl_inspector import report as inspector
from dtdebug.recorded.profiler_traces.time_account import Account, Interval, RankTimeline, account, late
from dtdebug.recorded.profiler_traces.trace_steps import steps
from dtdebug.recorded.profiler_traces.traces import Trace, load, paths
from dtdebug_taxonomy.model.status import CLEAR, Status
from dtdebug_taxonomy.model.training import Late

VERSION = 1
_ROWS, _WIDE, _NARROW = 64, 100, 20
_OF_TIME = 0.01
"""Share of a rank's time that known events must take for a statement on it."""
_CAUSES = {
    "loader": "give its loader more workers, or find what slows it on that host: disk, network, CPU that others use",
    "compute": "compare the host and the device with the others (clocks, temperature, other processes), and the "
    "amount of "
    "work that its batches hold",
    "other": "find what its program does between the steps and others don't: saving, evaluating, logging, a slow host",
}


def run(given: list[Path], *, as_json: bool) -> tuple[str, bool]:
    """Return the text, and False if all was read and understood, and nothing was found.

    Raises:
        UsageError: a file is not a trace.

    """
    if recordings := inspector.recordings(given):
        return inspector.report(recordings, as_json=as_json)
    read = load(paths(given))
    notes = [note for trace in read for note in trace.notes]
    notes += (f"{Path(t.file).name}: {_measure([t])}; left out" for t in read if not t.is_understood)
    traces = [trace for trace in read if trace.is_understood]
    counted, how = steps(traces) if traces else ({}, "")
    rows = [account(trace, counted.get(trace.rank)) for trace in traces]
    accounts, lines = [row[0] for row in rows], [row[1] for row in rows]
    if all(_busy(a) < _OF_TIME for a in accounts):
        return _not_understood(read, accounts, notes, as_json=as_json), True
    found = late(accounts, lines)
    whole = all(t.is_understood and t.whole for t in read)
    told_by_all = len(accounts) > 1 and any(a.steps for a in accounts)  # else no rank is cleared
    clear: Status = "healthy" if told_by_all else "no_failure"
    status: Status = "late" if found is not None else clear if whole else "unread"
    if as_json:
        told: dict[str, Any] = {
            "v": VERSION, "status": status, "ranks": accounts, "late": found, "notes": notes, "steps_by": how,
            "understood": _counts(read),
        }  # fmt: skip
        return msgspec.json.encode(told).decode() + "\n", status not in CLEAR
    first = found.means if found is not None else _all_clear(accounts, read)
    return "\n".join(_text(accounts, lines, first, found, [_steps_note(how), *notes])) + "\n", status not in CLEAR


def _counts(read: list[Trace]) -> dict[str, int]:
    return {"traces": sum(t.is_understood for t in read), "of": len(read), **_events(read)}


def _events(read: list[Trace]) -> dict[str, int]:
    return {"events": sum(trace.seen for trace in read), "known": sum(trace.known for trace in read)}


def _measure(read: list[Trace]) -> str:
    counts = _events(read)
    return f"{counts['known']:,} of {counts['events']:,} events are known"


def _busy(a: Account) -> float:
    """Return the share of a rank's time that known events take."""
    return (a.compute + a.exposed_communication + a.loader) / a.span if a.span else 0.0


def _not_understood(read: list[Trace], accounts: list[Account], notes: list[str], *, as_json: bool) -> str:
    what = "1 trace" if len(read) == 1 else f"{len(read)} traces"
    time = f" and take {max(map(_busy, accounts)):.1%} of the time at most" if accounts else ""
    means = f"Not understood: {what}; {_measure(read)}{time}, so whether a rank is late is not known."
    expected = "Expected: a trace of torch.profiler for each rank, with operators (cpu_op) or kernels (kernel)."
    if as_json:
        told: dict[str, Any] = {
            "v": VERSION, "status": "not_understood", "ranks": [], "late": None, "notes": [means, expected, *notes],
            "steps_by": "", "understood": _counts(read),
        }  # fmt: skip
        return msgspec.json.encode(told).decode() + "\n"
    return "\n".join([means, expected, *(f"note: {one_line(note, 200)}" for note in notes[:8])]) + "\n"


def _steps_note(how: str) -> str:
    if how:
        return f"steps are {how}"
    return "no steps: nothing that repeats was found on all ranks; call the profiler's step() once a step to count them"


def _text(
    accounts: list[Account], lines: list[RankTimeline], first: str, found: Late | None, notes: list[str]
) -> Iterator[str]:
    yield first
    if found is not None:
        yield f"  symptom: Training is slow: no speed-up, or slower than one device ({found.symptom})"
        yield f"  to do: {_CAUSES[found.phase]}"
    yield ""
    yield "rank  steps  s/step  compute  exposed communication  loader  idle"
    for a in accounts[:_ROWS]:
        step = f"{a.step_seconds:7.3f}" if a.step_seconds is not None else "      -"
        yield (
            f"{a.rank:4}  {a.steps:5} {step}  {a.compute / a.span:7.0%}  {a.exposed_communication / a.span:21.0%}"
            f"  {a.loader / a.span:6.0%}  {a.idle / a.span:4.0%}"
        )
    if len(accounts) > _ROWS:
        yield f"... {len(accounts) - _ROWS} more with --format json"
    yield ""
    width = max(_NARROW, min(_WIDE, shutil.get_terminal_size((80, 24)).columns - 8))
    longest = max(line.span for line in lines)
    for line in lines[:_ROWS]:
        yield f"{line.rank:4}  {picture(line, longest, width)}"
    yield "      # computes   ~ communicates, computing nothing   L loads   . idle"
    if accounts[0].on == "host":
        yield "      no kernel of a device was recorded: these are the operators of the host"
    yield from (f"note: {one_line(note, 200)}" for note in notes[:8])


def _all_clear(accounts: list[Account], read: list[Trace]) -> str:
    return f"{_no_late(accounts, read)} ({_measure(read)})."


def _no_late(accounts: list[Account], read: list[Trace]) -> str:
    if len(accounts) < len(read):
        return f"Only {len(accounts)} of {len(read)} traces were understood, so no rank is cleared; none is late"
    if len(accounts) == 1:
        return "One rank's trace alone does not tell who is late: record it on the others too, in the same steps"
    if not any(a.steps for a in accounts):
        return "No rank stands out over the whole recording; its steps are not known, so no rank is cleared"
    if part := sum(not trace.whole for trace in read):
        return f"No rank is late in what was read; {part} of {len(read)} traces were read in part"
    return "No rank is late, and no phase holds up all"


def picture(line: RankTimeline, longest: float, width: int) -> str:
    """Draw one rank's time from its first step to the end of the longest: each column shows the dominant phase."""
    columns = []
    shares = [
        (mark, _columns(spans, longest, width))
        for mark, spans in (("#", line.compute), ("~", line.communication), ("L", line.loader))
    ]
    unit = longest / width
    for place in range(width):
        if place * unit >= line.span:
            break
        mark, most = max(((mark, row[place]) for mark, row in shares), key=lambda pair: pair[1])
        columns.append(mark if most >= unit / 4 else ".")
    return "".join(columns)


def _columns(spans: tuple[Interval, ...], longest: float, width: int) -> list[float]:
    found, unit = [0.0] * width, longest / width
    for begin, end in spans:
        for place in range(max(0, int(begin / unit)), min(width - 1, int(end / unit)) + 1):
            found[place] += max(0.0, min(end, (place + 1) * unit) - max(begin, place * unit))
    return found
