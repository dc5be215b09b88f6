"""Reads traces, accounts for the ranks' time, and formats the result."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from dtdebug.privacy.sanitize import one_line
from dtdebug.recorded.profiler_traces.time_account import Account, Interval, RankTimeline, account, late
from dtdebug.recorded.profiler_traces.trace_steps import steps
from dtdebug.recorded.profiler_traces.traces import Trace, load, paths
from dtdebug_taxonomy.model.training import Late

VERSION = 1
_ROWS, _WIDE, _NARROW = 64, 100, 20
_CAUSES = {
    "loader": "give its loader more workers, or find what slows it on that host: disk, network, CPU that others use",
    "compute": "compare the host and the device with the others (clocks, temperature, other processes), and the "
    "amount of "
    "work that its batches hold",
    "other": "find what its program does between the steps and others don't: saving, evaluating, logging, a slow host",
}


def run(given: list[Path], *, as_json: bool) -> tuple[str, bool]:
    """Return the text, and True if a late rank or phase was found, or nothing was understood.

    Raises:
        UsageError: a file is not a trace.

    """
    read = load(paths(given))
    traces = [trace for trace in read if trace.known]
    notes = [note for trace in read for note in trace.notes]
    notes += (f"{Path(t.file).name}: none of its events is known; left out" for t in read if not t.known)
    if not traces:
        return _nothing_understood(read, notes, as_json=as_json), True
    counted, how = steps(traces)
    rows = [account(trace, counted.get(trace.rank)) for trace in traces]
    accounts, lines = [row[0] for row in rows], [row[1] for row in rows]
    found = late(accounts, lines)
    if as_json:
        told: dict[str, Any] = {"v": VERSION, "ranks": accounts, "late": found, "notes": notes, "steps_by": how}
        return msgspec.json.encode(told).decode() + "\n", found is not None
    return "\n".join(_text(accounts, lines, found, [_steps_note(how), *notes])) + "\n", found is not None


def _nothing_understood(read: list[Trace], notes: list[str], *, as_json: bool) -> str:
    events = sum(len(trace.events) for trace in read)
    means = (
        f"Not understood: {len(read)} traces, and none of their events is of a kind that torch.profiler writes; "
        "whether a rank is late is not known."
    )
    if as_json:
        told: dict[str, Any] = {
            "v": VERSION, "ranks": [], "late": None, "notes": [means, *notes], "steps_by": "", "events": events,
        }  # fmt: skip
        return msgspec.json.encode(told).decode() + "\n"
    return "\n".join([means, *(f"note: {one_line(note, 200)}" for note in notes[:8])]) + "\n"


def _steps_note(how: str) -> str:
    if how:
        return f"steps are {how}"
    return "no steps: nothing that repeats was found on all ranks; call the profiler's step() once a step to count them"


def _text(accounts: list[Account], lines: list[RankTimeline], found: Late | None, notes: list[str]) -> Iterator[str]:
    yield found.means if found is not None else _all_clear(accounts)
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


def _all_clear(accounts: list[Account]) -> str:
    if len(accounts) == 1:
        return "One rank's trace alone does not tell who is late: record it on the others too, in the same steps."
    if not any(a.steps for a in accounts):
        return "No rank stands out over the whole recording; its steps are not known, so no rank is cleared."
    return "No rank is late, and no phase holds up all."


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
