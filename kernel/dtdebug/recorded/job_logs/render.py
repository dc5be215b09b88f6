"""Renders a job as text for a terminal and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dtdebug.recorded.job_logs import clearance, slowness
from dtdebug.recorded.job_logs.first_failures import FirstFailure
from dtdebug.recorded.job_logs.job_view import Job
from dtdebug.recorded.job_logs.timestamps import format_clock, stamp
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
from dtdebug_taxonomy.knowledge.hardware import Event
from dtdebug_taxonomy.logs.log_end import is_stop
from dtdebug_taxonomy.model.ranks import Verdict, ranges, spell
from dtdebug_taxonomy.presentation.case_json import Case, Coverage, contract
from dtdebug_taxonomy.presentation.text import first_line, reading
from dtdebug_taxonomy.text.pattern_matcher import plain

VERSION = 1
_ROWS, _WORDS, _NEW = 4, 160, 8


def to_text(job: Job, diagnosis: Diagnosis, seconds: float, *, event: str = "", full: bool = False) -> str:
    """Return lines on what happened, coverage, first failure, followers, silent ranks, machine; then the diagnosis.

    `event`: what happened, if another reading of the same log says it; `full` as in `presentation.text.to_text`.
    """
    return "\n".join(_lines(job, diagnosis, seconds, event or first_event(job, diagnosis), full=full))


def first_event(job: Job, d: Diagnosis) -> str:
    """Return what happened, in one line."""
    if job.ended is not None and job.verdict is not None:
        return job.verdict.summary
    if not job.ranks and job.hardware:
        worst = job.hardware[0]
        return _machine(worst) if worst.role == "root" else "the machine reports no failure."
    happened = _has_event(job, d)
    if job.went_on is not None and not is_stop(job.verdict) and (happened or job.share.is_enough):
        return _went_on(job)
    if job.is_completed and not job.tells_more:
        return "no rank failed: the training was completed."
    if happened:
        return first_line(d)
    if job.exception is not None:
        file, line, text = job.exception
        return f"Not understood: {file}:{line} ends a log with {plain(text, _WORDS)!r}, and nothing known explains it."
    if clearance.status_of(job, found=False) == "not_understood":
        return clearance.not_understood(job.share)
    what = "what was read of these logs" if job.unread else "these logs"
    return f"no failure is recognised in {what} ({job.share.words})."


def _has_event(job: Job, d: Diagnosis) -> bool:
    """True if the logs show a failure or a stop."""
    return bool(job.first or job.cascade or job.silent or job.hardware or d.recognised or is_stop(job.verdict))


def _lines(job: Job, d: Diagnosis, seconds: float, event: str, *, full: bool) -> Iterator[str]:
    yield f"dtdebug: {event}"
    yield f"  {_coverage_line(job, seconds)}"
    if job.ended is not None:
        e = job.ended
        yield _row("ended", f"{plain(e.text, _WORDS)} ({e.file}:{e.line}); do: {e.action}")
    for row in job.first[:_ROWS]:
        yield _row("first", f"{_who(row)}{_at(row.time)}  {plain(row.text, _WORDS)}")
    if len(job.first) > _ROWS:
        yield _row("", f"{len(job.first) - _ROWS} more ranks failed on their own")
    if job.cascade:
        words = f" {plain(job.cascade_text, _WORDS)}" if job.cascade_text else ""
        count = len(job.cascade)
        yield _row("then", f"{count:,} rank{'s' * (count != 1)}{_at(job.cascade_time)}{words} (a consequence)")
    yield from _ranks(job)
    if job.new is not None:
        for n in job.new[:_NEW]:
            yield _row("new", f"in {n.files} of {job.files} logs: {plain(n.text, _WORDS)} ({n.file}:{n.line})")
        more = f"{len(job.new) - _NEW} more kinds of lines are new; --format json has all"
        if not job.new or len(job.new) > _NEW:
            yield _row("" if job.new else "new", more if job.new else "nothing that the healthy run did not print")
    machine_only = not job.ranks and bool(job.hardware)
    tells = _has_event(job, d) and (job.went_on is None or bool(job.snapshot.late) or is_stop(job.verdict))
    if tells and job.ended is None and not (machine_only and not d.recognised):
        yield from reading(d, full=full)


def _went_on(job: Job) -> str:
    slow = f" It is slow: {job.snapshot.late[0].means}" if job.snapshot.late else ""
    if job.unread:  # the failure may be there
        return f"no rank failed in what was read, up to step {job.went_on}; the rest was not read.{slow}"
    return f"no rank failed: training went on to the end of the logs, step {job.went_on} ({job.share.words}).{slow}"


def _ranks(job: Job) -> Iterator[str]:
    """Yield rows on ranks that stopped, fell behind, are slow or absent; on clocks; on the machine."""
    for s in job.silent[:_ROWS]:
        yield _row("stopped", f"rank {s.rank} {s.words}")
    if len(job.silent) > _ROWS:
        yield _row("", f"{len(job.silent) - _ROWS} more ranks stopped early")
    for rank, step, most in job.behind[:_ROWS]:
        yield _row("behind", f"rank {rank} printed step {step} last, most ranks step {most}")
    for rank, own, others in job.slowness.ranks[:_ROWS]:
        yield _row("slow", f"rank {rank}: {own:.3g} s a step, the others {others:.3g} s")
    yield from (_row("slow", words) for words in slowness.sentences(job.slowness))
    if job.clocks:
        rows = ", ".join(f"{host} {abs(s):.0f} s {'ahead' if s > 0 else 'behind'}" for host, s in job.clocks[:_ROWS])
        more = f", {len(job.clocks) - _ROWS} more" if len(job.clocks) > _ROWS else ""
        yield _row("clocks", f"{rows}{more}; all times are set right")
    if job.absent and job.went_on is None:
        yield _row("absent", f"no line of {spell(job.absent, 8)}")
    yield from (_row("machine", _machine(e)) for e in job.hardware[:_ROWS])
    if len(job.hardware) > _ROWS:
        yield _row("", f"{len(job.hardware) - _ROWS} more reports of the machine; --format json has all")


def _row(name: str, words: str) -> str:
    return f"  {name:<9} {words}"


def _coverage_line(job: Job, seconds: float) -> str:
    on = f" on {job.hosts:,} host{'s' * (job.hosts != 1)}" if job.hosts else ""
    unread = unread_line(job.unread) or "read: all"
    return f"{job.ranks:,} rank{'s' * (job.ranks != 1)}{on}, {_size(job.size)} in {seconds:.1f} s; {unread}"


def unread_line(unread: Sequence[str]) -> str:
    """Return how many files were not read, or only in part, and why the first was not; nothing if all were."""
    return f"not read: {len(unread)} ({plain(unread[0], 120)})" if unread else ""


def _size(count: int) -> str:
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= least:
            return f"{count / least:.1f} {unit}"
    return f"{count} bytes"


def _who(row: FirstFailure) -> str:
    name = "a rank" if row.rank is None else f"rank {row.rank}"
    return f"{name}{f' ({row.host})' if row.host else ''}"


def _at(time: float | None) -> str:
    return f" {format_clock(time)}" if time is not None else ""


def _machine(e: Event) -> str:
    where = f"{e.host}: " if e.host else ""
    device = f", PCI {e.pci}" if e.pci else ""
    rank = f" = rank {e.rank}" if e.rank is not None else ""
    return f"{where}{e.code} ({e.means}){_at(e.time)}{device}{rank}; do: {e.action}"


def data(job: Job, diagnosis: Diagnosis, *, found: bool = False) -> dict[str, Any]:
    """Return the JSON form for programs. `found`: something is wrong with the job."""
    verdict = job.verdict or Verdict(kind="none", summary="No failure is recognised.")
    case = Case(
        verdict=verdict,
        coverage=Coverage(ranks=job.ranks, expected=job.expected, hosts=job.hosts, unread=job.unread),
        diagnosis=diagnosis,
    )
    known = contract(case)
    return {
        "v": VERSION,
        "status": clearance.status_of(job, found=found),
        "understood": job.share._asdict(),
        "ranks": job.ranks,
        "hosts": job.hosts,
        "bytes": job.size,
        "coverage": {"files": job.files, "unread": list(job.unread), "expected": job.expected},
        "first": [
            {
                "rank": r.rank, "host": r.host, "time": stamp(r.time), "line": r.line, "file": r.file,
                "exception": r.exception, "text": r.text,
            }
            for r in job.first
        ],
        "cascade": {"ranks": list(job.cascade), "text": job.cascade_text, "time": stamp(job.cascade_time)},
        "silent": [
            {"rank": s.rank, "host": s.host, "since": stamp(s.since), "before": s.before, "step": s.step}
            for s in job.silent
        ],
        "new": None if job.new is None else [n._asdict() for n in job.new],
        "went_on": job.went_on,
        "ended": None if job.ended is None else _event(job.ended),
        "clocks": [{"host": host, "ahead": seconds} for host, seconds in job.clocks],
        "absent": ranges(job.absent) if job.absent else "",
        "behind": [{"rank": r, "step": n, "most": m} for r, n, m in job.behind],
        "slow": [{"rank": r, "seconds": own, "others": others} for r, own, others in job.slowness.ranks],
        "longer": job.slowness.longer,
        "stall": _stall(job),
        "hardware": [_event(e) for e in job.hardware],
        "verdict": known["verdict"],
        "claims": known["claims"],
        "diagnosis": known["diagnosis"],
    }  # fmt: skip


def _stall(job: Job) -> dict[str, Any] | None:
    gap = job.slowness.stall
    if gap is None:
        return None
    ranks = list(job.slowness.stalled)
    return {"after": gap.step, "time": stamp(gap.time), "seconds": gap.seconds, "ranks": ranks}


def _event(e: Event) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(e)
    return {
        "code": e.code, "host": e.host, "rank": e.rank, "action": e.action, "owner": e.owner, "time": stamp(e.time),
        "means": e.means, "role": e.role, "pci": e.pci, "pid": e.pid,
        **{k: row[k] for k in ("file", "line", "url", "link") if k in row},
    }  # fmt: skip


def relocate_lines(d: Diagnosis, places: Sequence[tuple[str, int]]) -> Diagnosis:
    """Replace line numbers of the merged output by those of the ranks' own logs."""

    def true(reasons: Any) -> Any:
        return tuple(
            msgspec.structs.replace(r, line=places[r.line - 1][1])
            if r.source == "printed" and 0 < r.line <= len(places)
            else r
            for r in reasons
        )

    return msgspec.structs.replace(
        d,
        symptoms=tuple(msgspec.structs.replace(s, why=true(s.why)) for s in d.symptoms),
        advice=tuple(msgspec.structs.replace(a, because=true(a.because)) for a in d.advice),
    )
