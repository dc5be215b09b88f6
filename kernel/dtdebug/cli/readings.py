"""Reads logs, a pasted text or a description.

Imports are deferred until they are needed: an answer comes within a second of the command.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dtdebug.errors import UsageError

if TYPE_CHECKING:
    from dtdebug.recorded.attempts.decision import Decision
    from dtdebug.recorded.curves.report import CurveReading
    from dtdebug.recorded.job_logs.job_view import Job
    from dtdebug.recorded.log_files.training_share import Share
    from dtdebug.recorded.logs import Logs
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.explanations.leads import Subject
    from dtdebug_taxonomy.model.ranks import Verdict
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.model.status import Status

_WAITED = "Watchdog caught collective operation timeout"
"""Messages of ranks that wait for another one: then it matters which ranks do not print them."""
_TRACE = 10.0
"""Minutes until two snapshots of a growing process are compared."""
_QUIET = 60.0
"""Seconds for which a job that trains may print nothing."""
_SEVERAL = 4
"""Printers, one of them without a rank, from which a log is read as that of several ranks."""


def _exclusive(file: str, one: int, other: int) -> bool | None:
    """Compare the branches that two ranks take in a file; imported late, because it is seldom needed."""
    from dtdebug.recorded.flight_recorder.source_branches import exclusive

    return exclusive(file, one, other)


def snapshot_of(logs: Logs, situation: str) -> tuple[Any, int]:
    """Return a snapshot of a log and a description, and the size of the whole log in bytes."""
    import msgspec

    from dtdebug.account.printed import with_program
    from dtdebug.privacy.sanitize import plain
    from dtdebug.recorded.job_logs.surroundings import of_part
    from dtdebug_taxonomy.logs.split_failures import lead_first, split_failures
    from dtdebug_taxonomy.logs.split_post import split_prose
    from dtdebug_taxonomy.logs.tasks import NO_SURROUNDINGS
    from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

    snapshot = logs.snapshot
    if logs.alone is not None and not snapshot.output.strip() and not situation:
        name = "standard input" if logs.alone == "-" else logs.alone
        raise UsageError(f"{name}: is empty; describe what you see with --situation, or run `dtdebug wizard`")
    output = snapshot.output
    if not (situation and output.strip()):  # a pasted thread that contains a log is split into both, however it came
        words, printed = split_prose(output or situation)
        if words or not situation:
            situation, output = words, printed
    snapshot = msgspec.structs.replace(snapshot, situation=plain(situation), output=output)
    waited = logs.is_file and snapshot.first_lines and _WAITED in output
    around = of_part(logs.part) if waited else NO_SURROUNDINGS
    first, *later = (
        with_program(msgspec.structs.replace(part, verdict=verdict_of_log(part, _exclusive, around=around)))
        for part in lead_first(split_failures(snapshot))
    )
    return msgspec.structs.replace(first, later=tuple(later)), logs.excerpt.size


def parse_answers(pairs: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Parse the answers, and the questions whose answer is unknown."""
    from dtdebug_taxonomy.knowledge.loader import load

    observations = load().observations
    result, unknown = dict[str, str](), list[str]()
    for pair in pairs:
        key, _, value = pair.partition("=")
        if key not in observations:
            raise UsageError(f"--answer {pair}: no observation {key!r}; `dtdebug explain` lists what there is")
        values = [v.value for v in observations[key].value]
        if value == "unknown":
            unknown.append(key)
        elif value not in values:
            raise UsageError(f"--answer {pair}: {key} is one of {', '.join(values)}, unknown")
        else:
            result[key] = value
    return result, tuple(unknown)


class Asked(NamedTuple):
    """Options of the user for an answer."""

    format: str = "text"
    full: bool = False
    situation: str = ""
    answers: Sequence[str] = ()
    doctor: bool = False
    tee: bool = False
    prefix: str | None = None
    """Prefix of the names of dumps, if only those are to be read."""

    @staticmethod
    def of(options: argparse.Namespace) -> Asked:
        """Return what the options of a command ask for."""
        known = {"format", "full", "situation", "doctor", "tee", "prefix"}
        given = {name: getattr(options, name) for name in known if getattr(options, name, None) is not None}
        return Asked(**given, answers=tuple(getattr(options, "answer", ())))


class Reading(NamedTuple):
    """Findings of logs, a pasted text or a description."""

    snapshot: Snapshot
    diagnosis: Diagnosis
    found: bool
    """True if a failure is recognised."""
    size: int = 0
    """Size of the log in bytes."""
    job: Job | None = None
    """All ranks of the job, if its logs were read as such."""
    seconds: float = 0.0
    curves: CurveReading | None = None
    unread: tuple[str, ...] = ()
    """Parts of the one log that were not read for its ranks."""

    @property
    def share(self) -> Share:
        """Share of what was read that is understood."""
        from dtdebug.recorded.log_files.training_share import measure

        return self.job.share if self.job is not None else measure(self.snapshot.output.splitlines())

    @property
    def build_errors(self) -> tuple[str, ...] | None:
        """The first errors of a build that has to do with no training; None if it is none, or is recognised."""
        from dtdebug_taxonomy.logs.build_logs import errors_of_build

        d = self.diagnosis
        unknown = self.job is None and not (self.found or d.ordinary or d.happened or self.snapshot.situation)
        return errors_of_build(self.snapshot.output) if unknown else None

    @property
    def is_prose(self) -> bool:
        """True if it is a person's text and no output: that nothing is recognised in it says nothing of a run."""
        from dtdebug_taxonomy.logs.split_post import prints_nothing

        return self.job is None and bool(self.snapshot.situation) and prints_nothing(self.snapshot.output)

    @property
    def is_complaint(self) -> bool:
        """True if a person complains, and nothing that was printed shows why: that is no all-clear."""
        from dtdebug_taxonomy.diagnosis.out_of_scope import complains

        return self.job is None and complains(self.snapshot.situation)

    @property
    def alarm(self) -> tuple[int, str]:
        """Line of the only log that reports an end or a fault, with no step of a training; (0, "") without one."""
        from dtdebug_taxonomy.logs.log import read_output
        from dtdebug_taxonomy.logs.log_end import unexplained_alarm

        return (0, "") if self.job is not None else unexplained_alarm(read_output(self.snapshot))

    @property
    def subject(self) -> Subject:
        """Subject of the answer."""
        from dtdebug_taxonomy.explanations.leads import Seen, subject_of

        d, job = self.diagnosis, self.job
        return subject_of(
            Seen(
                verdict=self.snapshot.verdict,
                happened=bool(d.happened),
                recognised=self.found or bool(d.ordinary),
                symptom=d.symptoms[0].id if d.symptoms else "",
                sources=frozenset(r.source for s in d.symptoms[:1] for r in s.why),
                ranks=job is not None and bool(job.first or job.tells_more),
                curves=self.curves is not None and self.curves.faulty,
            )
        )

    @property
    def completed_line(self) -> int:
        """Line that says that the training was completed, if nothing else happened; else 0."""
        from dtdebug_taxonomy.logs.log import completed_line, read_output

        return 0 if self.diagnosis.happened else completed_line(read_output(self.snapshot))

    @property
    def status(self) -> Status:
        """Result of the reading: a failure, none, or not known."""
        from dtdebug.recorded.job_logs import clearance
        from dtdebug_taxonomy.logs.log_end import is_stop

        if self.job is not None:
            return clearance.status_of(self.job, found=self.found)
        if self.found:
            return "not_understood" if is_stop(self.snapshot.verdict) else "failed"
        if self.build_errors is not None:
            return "not_understood"
        if self.diagnosis.ordinary.startswith("A warning"):
            return "no_failure"
        if self.diagnosis.ordinary or self.diagnosis.happened:
            return "program_error"
        if self.is_prose or self.is_complaint:
            return "not_understood"
        if self.unread:
            return "unread"
        known = self.share.is_enough or not self.snapshot.output.strip() or self.completed_line
        return "no_failure" if known and not self.alarm[0] else "not_understood"


def read_logs(logs: Logs, asked: Asked) -> Reading:
    """Return what the logs show: one log by its failures, several as the logs of one job.

    One log in which no failure is recognised is read as that of a job too: its ranks may have stopped, or be slow.

    Raises:
        UsageError: nothing can be read.

    """
    if logs.paths and logs.alone is None:
        return read_job(logs, asked)
    reading = _read_log(logs, asked)
    if not logs.is_file:
        return reading
    if reading.found or reading.diagnosis.ordinary or reading.diagnosis.happened:
        return _ended_from_outside(logs, asked) or _with_silent(reading, logs, asked)
    job = read_job(logs, asked)
    return job if job.job is not None and job.job.tells_more else _with_unread(reading, job)


def _ended_from_outside(logs: Logs, asked: Asked) -> Reading | None:
    """Return the reading of all ranks if a scheduler or a person ended the job before any of them failed."""
    if not any(event.role == "end" for event in logs.part.hardware):
        return None
    reading = read_job(logs, asked)
    return reading if reading.job is not None and reading.job.ended is not None else None


def _with_silent(reading: Reading, logs: Logs, asked: Asked) -> Reading:
    """Return the reading of a log with a note on a rank that stopped printing long before the failure.

    A rank that raised, and printed nothing after it, explains more than another one's silence: the reading of all
    ranks knows the times of both.
    """
    from dtdebug_taxonomy.logs.log import read_output

    snapshot = reading.snapshot
    if not reading.found or len({line.rank for line in read_output(snapshot).lines}) < _SEVERAL:
        return reading
    job = read_job(logs, asked)
    of_text, of_job = snapshot.verdict, job.snapshot.verdict
    silence = of_text is None or of_text.kind in ("not_arrived", "not_understood")
    noted = _with_unread(_with_notes(reading, job.snapshot.notes), job)
    if silence and of_job is not None and (of_job.kind == "dead" or noted.unread):
        return job
    return noted


def _with_unread(reading: Reading, job: Reading) -> Reading:
    from dtdebug.recorded.job_logs.clearance import left_out

    return reading if job.job is None else reading._replace(unread=tuple(left_out(job.job)))


def _with_notes(reading: Reading, notes: Sequence[str]) -> Reading:
    diagnosis = msgspec.structs.replace(reading.diagnosis, notes=(*notes, *reading.diagnosis.notes))
    return reading._replace(diagnosis=diagnosis) if notes else reading


def read_job(logs: Logs, asked: Asked) -> Reading:
    """Return what the logs of a job show; raises UsageError."""
    from dtdebug.recorded.job_logs import api

    began = time.perf_counter()
    return judge_job(api.job_of(logs.part, asked.situation), began, asked)


def judge_job(job: Job, began: float, asked: Asked) -> Reading:
    """Return what a job shows; `began` is a time of `perf_counter`."""
    from dtdebug.recorded.job_logs import api

    if asked.doctor:
        job = msgspec.structs.replace(job, snapshot=with_doctor(job.snapshot))
    snapshot, diagnosis, found = api.conclude(job, *parse_answers(asked.answers))
    return Reading(snapshot, diagnosis, found, job.size, job, time.perf_counter() - began)


def _read_log(logs: Logs, asked: Asked) -> Reading:
    from dtdebug.privacy.boundary import diagnose as diagnosis_of
    from dtdebug_taxonomy.diagnosis.out_of_scope import complains
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.logs.build_logs import errors_of_build
    from dtdebug_taxonomy.logs.log_end import is_stop
    from dtdebug_taxonomy.logs.split_post import only_words

    answers, unknown = parse_answers(asked.answers)
    knowledge, begin = load(), time.perf_counter()
    snapshot, size = snapshot_of(logs, asked.situation)
    snapshot = with_doctor(snapshot) if asked.doctor else snapshot
    d = diagnosis_of(knowledge, snapshot, answers, unknown)
    words, left = only_words(snapshot.output)
    if complains(words) and not (d.recognised or d.ordinary or snapshot.situation):
        described = msgspec.structs.replace(snapshot, situation=words, output=left)
        again = diagnosis_of(knowledge, described, answers, unknown)
        snapshot, d = (described, again) if is_telling(again) else (snapshot, d)
    if not (is_telling(d) or d.ordinary or snapshot.situation):
        snapshot = _with_stop(snapshot)
        d = d if snapshot.verdict is None else diagnosis_of(knowledge, snapshot, answers, unknown)
    found = is_telling(d) or is_stop(snapshot.verdict)
    if d.ordinary and not snapshot.situation and errors_of_build(snapshot.output) is not None:
        d = msgspec.structs.replace(d, ordinary="", happened="")  # the last line of a build says nothing of training
    return Reading(snapshot, d, found, size, None, time.perf_counter() - begin)


def add_memory(reading: Reading, asked: Asked) -> Reading:
    """Return the reading of a failure for want of memory with the curve of it that grows, if the log prints one."""
    from dtdebug.privacy.boundary import diagnose as diagnosis_of
    from dtdebug.recorded.curves.judge_memory import grown_before
    from dtdebug_taxonomy.inference.next_step import Next
    from dtdebug_taxonomy.knowledge.loader import load

    d = reading.diagnosis
    if reading.curves is None or not reading.found or not d.symptoms or d.symptoms[0].id != "memory-issue":
        return reading
    grown = grown_before(reading.curves.findings, d.culprits, d.happened)
    if grown is None:
        return reading
    observation, row = grown
    examined = {**reading.snapshot.examined, observation: ("grows", row.says)}
    snapshot = msgspec.structs.replace(reading.snapshot, examined=examined)
    d = diagnosis_of(load(), snapshot, *parse_answers(asked.answers))
    if snapshot.verdict is not None:
        summary = f"{row.says}. {snapshot.verdict.summary}"
        verdict = msgspec.structs.replace(snapshot.verdict, summary=summary)
        snapshot = msgspec.structs.replace(snapshot, verdict=verdict)
    step = Next(kind="measure", text=row.next, minutes=_TRACE)
    told = f"{row.says}. {d.happened}"
    d = msgspec.structs.replace(d, happened=told, next=step, question=None, notes=reading.diagnosis.notes)
    return reading._replace(snapshot=snapshot, diagnosis=d)


def add_attempts(reading: Reading, decision: Decision | None) -> Reading:
    """Return the reading of a log with restarts with a note on what to do after them."""
    if decision is None or not reading.found:
        return reading
    from dtdebug.cli import attempts

    return _with_notes(reading, (attempts.note(decision),))


def add_runs(reading: Reading, logs: Logs, asked: Asked) -> Reading:
    """Return the reading with a note on the earlier runs in its log; a text tells beside it what is no news of this."""
    from dtdebug.recorded.attempts import earlier_runs

    if len(logs.runs) > 1:
        said, alike = earlier_runs.account_of(logs.runs)
    elif reading.job is not None and reading.job.cut:
        said, alike = earlier_runs.account_of_files(reading.job), False
    else:
        return reading
    return _with_notes(reading, (said,)) if alike and reading.found else _with_aside(reading, said, asked)


def add_writer(reading: Reading, paths: Sequence[str], asked: Asked) -> Reading:
    """Return the reading of a log that just stops with what is seen of the process that still writes it.

    Written a moment ago, it shows no failure so far; else the process may hang, or do what takes long.
    """
    from dtdebug.live.procfs.log_writers import writer_of
    from dtdebug.recorded.log_files.sources import find_logs
    from dtdebug_taxonomy.logs.log_end import UNSIGNED, is_stop

    verdict = reading.snapshot.verdict
    if verdict is None or not is_stop(verdict) or UNSIGNED not in verdict.summary:
        return reading
    writer = writer_of([source.path for source in find_logs(list(paths))[0] if not source.member])
    if writer is None:
        return reading
    end = verdict.summary.partition(UNSIGNED)[0]
    if writer.age <= _QUIET:
        said = f"{end}; process {writer.pid} wrote it {writer.age:.0f} s ago and has it open: the job still runs"
        return _with_aside(_with_verdict(reading, None), said, asked)
    long = f"{writer.age / 60:.0f} min" if writer.age >= 2 * _QUIET else f"{writer.age:.0f} s"
    told = f"{end}; nothing was written for {long}, and process {writer.pid} still has it open: it hangs, or is in a "
    return _with_verdict(reading, msgspec.structs.replace(verdict, summary=f"{told}long evaluation or checkpoint."))


def _with_verdict(reading: Reading, verdict: Verdict | None) -> Reading:
    """Return the reading of a log that just stops with another verdict on that; None: nothing is wrong."""
    from dtdebug.privacy.boundary import diagnose as diagnosis_of
    from dtdebug_taxonomy.knowledge.loader import load

    snapshot = msgspec.structs.replace(reading.snapshot, verdict=verdict)
    job = None if reading.job is None else msgspec.structs.replace(reading.job, verdict=verdict, snapshot=snapshot)
    d = diagnosis_of(load(), snapshot)
    return reading._replace(snapshot=snapshot, diagnosis=d, found=verdict is not None, job=job)


def _with_aside(reading: Reading, said: str, asked: Asked) -> Reading:
    """Return the reading with a note; a text tells it beside the answer."""
    from dtdebug.presentation.terminal import say_aside

    if asked.format == "text":
        say_aside(said)
        return reading
    return _with_notes(reading, (said,))


def _with_stop(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the verdict that its log just stops, if nothing else is known of it."""
    import msgspec

    from dtdebug_taxonomy.logs.log import read_output
    from dtdebug_taxonomy.logs.log_end import stopped_log

    stopped = stopped_log(read_output(snapshot)) if snapshot.verdict is None else None
    return snapshot if stopped is None else msgspec.structs.replace(snapshot, verdict=stopped)


def is_telling(d: Diagnosis) -> bool:
    """True if a diagnosis recognises a failure, or one of those that came later."""
    return d.recognised or d.verdict != "unknown" or any(is_telling(each) for each in d.later)


def with_doctor(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with the measurements of `dtdebug doctor` within the last hour."""
    import msgspec

    from dtdebug.storage import doctor_result

    return msgspec.structs.replace(snapshot, examined=doctor_result.last_measured())
