"""One attempt of a job: how it failed, where, at which step and data, and how far it had got."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from dtdebug.recorded.job_logs.timestamps import when, year_of
from dtdebug_taxonomy.logs.completion import is_completion
from dtdebug_taxonomy.logs.events import PrintedException
from dtdebug_taxonomy.logs.lines import Line
from dtdebug_taxonomy.logs.log import Log, place_of, read_output
from dtdebug_taxonomy.logs.progress import STEP
from dtdebug_taxonomy.model.snapshot import Snapshot

Kind = Literal["program", "machine", "scheduler", "unknown", "none"]
"""End of an attempt: by its program, by a device, host or network, by the scheduler, unknown; none: it did not fail."""

_MACHINE = re.compile(
    r"(?i)\bECC\b|\bXid\b|fallen off the bus|uncorrectable|hardware (?:error|failure)|unspecified launch failure"
    r"|illegal (?:memory access|instruction)|device not ready|no route to host|broken pipe|remote process exited"
    r"|connection (?:reset|refused|closed|timed out)|\bNCCL error|nccl(?:System|Remote|Internal)Error|DistBackendError"
    r"|DistNetworkError|Watchdog caught|socket timeout|timed? ?out|\[Errno (?:5|101|104|110|111|113|116)\]"
    r"|input/output error|stale file handle|name resolution|\bIB\b.{0,40}\b(?:error|down)|link (?:is )?down|node.?fail"
    r"|SIGBUS|SIGKILL|NCCL WARN|peer GPU memory access|heartbeat"
)
_SCHEDULER = re.compile(
    r"(?i)DUE TO (?:TIME LIMIT|PREEMPTION|JOB REQUEUE|NODE FAILURE)|\bpreempt(?:ed|ion)\b|CANCELLED AT"
    r"|spot interruption|\bevict(?:ed|ion)\b|TerminationByKubelet"
)
_SAVED = re.compile(
    r"(?i)(?:\b(?:sav(?:ed|ing)|wrote|written|stored)\b[^\n]{0,80}?\b(?:checkpoint|ckpt)|\bcheckpoint\b[^\n]{0,60}?\bsaved\b"
    r"|\b(?:checkpoint|ckpt) (?:written|stored|complete))"
)
_SAVED_STEP = re.compile(r"(?i)(?:step|iter(?:ation)?|checkpoint|ckpt|global_step)[ _=:-]{0,8}(\d{1,9})\b")
_POSITION = re.compile(
    r"(?i)\b(shard|file|sample|record|document|doc|part|chunk|row|example|batch|index|idx|offset)s?(?: id)?"
    r"[ _=:#-]{0,3}(\d{2,12})\b"
)
_CODE = re.compile(r"(?i)\b(?:commit|git(?: sha| hash| rev\w{0,6})?|revision)\b[ :=]{1,3}([0-9a-f]{7,40})\b")
_RELEASE = re.compile(
    r"(?i)\b(torch|pytorch|transformers|deepspeed|lightning|nccl|cuda|driver|megatron)(?: version)?[ :=v]{1,3}"
    r"(\d{1,4}\.\d{1,4}(?:\.\d{1,6})?)"
)
_HOST = re.compile(r"(?i)\b(?:host|hostname|node|nodename)s?[ :=]{1,3}([A-Za-z][\w.-]{1,62}\d)\b")
_FIGURES = re.compile(r"0x[0-9a-fA-F]+|\d+")
_NEAR = 12
"""Lines above a failure in which the same rank may name the data that it read."""
_WORDS = 400


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt."""

    name: str
    kind: Kind = "none"
    root: str = ""
    """Key that equal failures share: type, place in the program, words without figures."""
    words: str = ""
    rank: int | None = None
    host: str = ""
    """Host of the rank that failed first."""
    hosts: tuple[str, ...] = ()
    """All hosts that are named."""
    position: str = ""
    """Data at which it failed, as `shard 70339`."""
    begun: int | None = None
    """First step that it printed."""
    step: int | None = None
    """Last step that it printed."""
    saved: int | None = None
    """Step of its last checkpoint."""
    saved_time: float | None = None
    began: float | None = None
    ended: float | None = None
    """Time of its first line, and of its failure or last line."""
    code: str = ""
    releases: tuple[str, ...] = ()
    file: str = ""
    line: int = 0
    completed: bool = False

    @property
    def failed(self) -> bool:
        """True if it ended in a failure."""
        return self.kind != "none"


def attempt_of(snapshot: Snapshot, name: str) -> Attempt:
    """Return what the output of one attempt shows."""
    log, file = read_output(snapshot), snapshot.source
    bodies = [(line, line.body[:_WORDS]) for line in log.lines]
    own = log.outcome.own
    root = own[0] if own else None
    found: dict[str, object] = {}
    end: Line | None = None
    if root is not None:
        found, end = _of_exception(log, root), log.lines[root.index] if root.index < len(log.lines) else None
    else:
        end = next((line for line, body in bodies if _SCHEDULER.search(body)), None)
        kind: Kind = "scheduler"
        if end is None and log.outcome.exits:
            exited = log.outcome.exits[0]
            kind = "machine" if exited.signal in ("SIGBUS", "SIGKILL") else "unknown"
            words = exited.signal or f"exit code {exited.code}"
            found = {"kind": kind, "root": words, "words": words, "rank": exited.rank, "host": exited.host}
            end = next((line for line in log.lines if line.number == exited.line), None)
        elif end is None:
            kind = "machine"
            end = next((line for line, body in bodies if _is_report(line, body)), None)
        if end is not None and not found:
            words = end.body.strip()[:200]
            key = _SCHEDULER.search(words) or _MACHINE.search(words)
            found = {"kind": kind, "root": key[0].lower() if key else words, "words": words, "rank": end.rank}
    steps = list(_steps(bodies))
    saved = _last_saved(bodies)
    year = year_of(line.time.encode() + b" " + line.body[:60].encode() for line in log.lines[:40])
    times = _times(log.lines, year)
    host = str(found.get("host") or "") or _host_of(log.lines, bodies, end)
    completed = any(is_completion(body) for _, body in bodies[-400:])
    if completed and root is None and not log.outcome.exits:
        found, end = {}, None
    return Attempt(
        name=name,
        **{key: value for key, value in found.items() if key != "host"},  # type: ignore[arg-type]
        host=host if found else "",
        hosts=tuple(sorted(set(_hosts(bodies)))),
        position=_position(log.lines, end) if found else "",
        begun=steps[0] if steps else None,
        step=max(steps, default=None),
        saved=saved[0] if saved else None,
        saved_time=_time_at(times, saved[1]) if saved else None,
        began=next(iter(times.values()), None),
        ended=_time_at(times, end.number if end is not None else log.lines[-1].number) if log.lines else None,
        code=next((m[1] for _, body in bodies if (m := _CODE.search(body))), ""),
        releases=tuple(sorted({f"{m[1].lower()} {m[2]}" for _, body in bodies[:400] for m in _RELEASE.finditer(body)})),
        file=file,
        line=end.number if end is not None else 0,
        completed=completed,
    )


def _of_exception(log: Log, root: PrintedException) -> dict[str, object]:
    place = place_of(root)
    words = f"{root.type.rpartition('.')[2]}{f': {root.message}' if root.message else ''}"[:200]
    key = f"{root.type}|{place.file}:{place.line}|{_FIGURES.sub('#', root.message)[:120]}"
    kind: Kind = "machine" if _MACHINE.search(f"{root.type}: {root.message}") else "program"
    host = next((e.host for e in log.said.exits if e.rank == root.rank and e.host), "")
    return {"kind": kind, "root": key, "words": words, "rank": root.rank, "host": host}


def _is_report(line: Line, body: str) -> bool:
    return _MACHINE.search(body) is not None and (
        line.level.upper() in ("E", "ERROR", "F", "FATAL", "CRITICAL") or "Xid" in body or "NCCL WARN" in body
        or "error" in body.lower() or "Watchdog" in body
    )  # fmt: skip


def _steps(bodies: Iterable[tuple[Line, str]]) -> Iterator[int]:
    for _, body in bodies:
        if (found := STEP.search(body)) is not None and not _SAVED.search(body):
            yield int(found[1])


def _last_saved(bodies: Sequence[tuple[Line, str]]) -> tuple[int, int] | None:
    """Return the step of the last checkpoint, and the line that reports it."""
    for line, body in reversed(bodies):
        if _SAVED.search(body) and (named := _SAVED_STEP.findall(body)):
            return int(named[-1]), line.number
    return None


def _times(lines: Sequence[Line], year: int) -> dict[int, float]:
    found = {}
    for line in lines:
        head = f"{line.time} {line.body[:60]}" if line.time else line.body[:100]
        if (time := when(head.encode(), year or 1970)) is not None:
            found[line.number] = time
    return found


def _time_at(times: dict[int, float], number: int) -> float | None:
    """Return the time of a line, or of the nearest one above it."""
    near = max((n for n in times if n <= number), default=None)
    return None if near is None else times[near]


def _hosts(bodies: Iterable[tuple[Line, str]]) -> Iterator[str]:
    for line, body in bodies:
        if line.host:
            yield line.host
        if (named := _HOST.search(body)) is not None:
            yield named[1]


def _host_of(lines: Sequence[Line], bodies: Sequence[tuple[Line, str]], end: Line | None) -> str:
    """Return the host of the rank that failed: of its line, else as other lines of the rank name it."""
    if end is None:
        return ""
    if end.host:
        return end.host
    near = [body for line, body in bodies if abs(line.number - end.number) <= _NEAR and line.rank == end.rank]
    if (named := next((m for body in near if (m := _HOST.search(body))), None)) is not None:
        return named[1]
    if end.rank is None:
        return ""
    return next(_hosts((line, body) for line, body in bodies if line.rank == end.rank), "")


def _position(lines: Sequence[Line], end: Line | None) -> str:
    """Return the data that the failing message names, else what its rank named shortly before."""
    if end is None:
        return ""
    place = next((n for n, line in enumerate(lines) if line.number == end.number), 0)
    above = [line for line in lines[max(place - 40 * _NEAR, 0) : place] if line.rank == end.rank][-_NEAR:]
    for line in (end, *reversed(above)):
        body = line.body[:_WORDS]
        if STEP.search(body) and line is not end:
            continue
        if "Error" in body and line is not end:
            continue
        if (named := _POSITION.search(body)) is not None and not body.lstrip().startswith("File "):
            return f"{named[1].lower()} {named[2]}"
    return ""
