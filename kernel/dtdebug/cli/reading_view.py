"""Prints what a reading shows: the short answer, all of it, JSON, Markdown, or a page.

Imports are deferred until they are needed: an answer comes within a second of the command.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dtdebug.cli.readings import (
    Asked,
    Reading,
    add_attempts,
    add_memory,
    add_runs,
    add_writer,
    is_telling,
    parse_answers,
    read_logs,
)
from dtdebug.errors import FOUND, NOTHING
from dtdebug.presentation.terminal import waiting_line

if TYPE_CHECKING:
    from dtdebug.recorded.attempts.decision import Decision
    from dtdebug.recorded.curves.report import CurveReading
    from dtdebug.recorded.job_logs.job_view import Job
    from dtdebug.recorded.logs import Logs
    from dtdebug_taxonomy.model.snapshot import Snapshot

_ASK = 'Next  If the job still runs: `dtdebug attach`. Else say what you see: dtdebug "it hangs at ..."'
_TOO_LITTLE = "Too little is said: what happens, and what should happen instead?"
_OUTSIDE = "Not recognised: the text speaks of no device, rank, process, host, launcher, hang, loss or release."


def answer_logs(paths: Sequence[str], asked: Asked, *, metrics: Sequence[str] = ()) -> int:
    """Print what logs, or the description alone, show; return the exit status. `metrics`: files of curves with them."""
    from dtdebug.recorded.logs import Logs

    logs = Logs(paths, tee=asked.tee)
    with waiting_line(paths):
        decision = None if asked.situation else logs.decision
        if (status := answer_attempts(logs, decision, asked)) is not None:
            return status
        reading = add_attempts(read_logs(logs, asked), decision)._replace(curves=logs.curves_with(metrics))
        reading = add_memory(reading, asked)
    reading = add_writer(add_runs(reading, logs, asked), paths, asked)
    return print_reading(reading, paths[0] if len(paths) == 1 else "", asked)


def answer_attempts(logs: Logs, decision: Decision | None, asked: Asked) -> int | None:
    """Print what to do after several attempts, if that is the answer, and return the exit status; else None."""
    from dtdebug_taxonomy.explanations.leads import Seen, subject_of

    several = decision is not None and (logs.alone is None or decision.action == "none")
    if decision is None or subject_of(Seen(attempts=several)) != "attempts":
        return None
    from dtdebug.cli import attempts

    return attempts.answer(decision, asked.format, full=asked.full)


def show_text(text: str, name: str, asked: Asked) -> int:
    """Print what a text shows that was printed elsewhere, as in a notebook; return the exit status."""
    from dtdebug.account.printed import with_program
    from dtdebug.privacy.boundary import diagnose as diagnosis_of
    from dtdebug.privacy.sanitize import plain
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.logs.pasted_margins import without_margins
    from dtdebug_taxonomy.model.snapshot import Snapshot

    output = without_margins(plain(text))
    snapshot = with_program(Snapshot(situation=plain(asked.situation), output=output, source=name))
    d = diagnosis_of(load(), snapshot, *parse_answers(asked.answers))
    return print_reading(Reading(snapshot, d, is_telling(d), len(text)), name, asked)


def print_reading(reading: Reading, name: str, asked: Asked, *, rows: Job | None = None) -> int:
    """Print a reading; return the exit status. `rows`: show what the job's ranks did, below the same first line."""
    curves, leads = reading.curves, reading.subject == "curves"
    if asked.format == "json":
        record = _record(reading, name, asked)
        if curves is not None and curves.curves:
            from dtdebug.recorded.curves import report

            record["curves"] = report.as_json(curves)
        _save(reading)
        print(msgspec.json.encode(record).decode())
    elif curves is not None and leads and asked.format != "html":
        if curves.findings:  # else `why` would tell of an earlier failure
            d = msgspec.structs.replace(reading.diagnosis, happened=curves.findings[0].says)
            _save(reading._replace(found=True, diagnosis=d))
        print_curves(curves, asked)
    else:
        _print_logs(reading, asked, rows)
        told = curves is not None and any(row.says in reading.diagnosis.happened for row in curves.findings[:1])
        line = _curves_line(curves, reading) if curves is not None and not told else ""
        if line and asked.format == "text":
            print(line)
        if curves is not None and asked.full and asked.format == "text" and curves.curves:
            from dtdebug.recorded.curves import report

            print(f"\nCurves\n{report.table(curves, sys.stdout)}")
    from dtdebug.recorded.job_logs.clearance import left_out
    from dtdebug_taxonomy.model.status import CLEAR

    unsure = reading.status not in CLEAR or (rows is not None and left_out(rows))
    return FOUND if leads or unsure else NOTHING


def print_curves(curves: CurveReading, asked: Asked) -> None:
    """Print the answer that curves give; their table too, if all is asked for."""
    from dtdebug.presentation.terminal import PREFIX, format_answer
    from dtdebug.recorded.curves import report

    if asked.format == "json":
        print(msgspec.json.encode({"v": report.VERSION, "curves": report.as_json(curves)}).decode())
        return
    if curves.findings:
        print(format_answer(report.short_answer(curves, sys.stdout), sys.stdout, more=report.MORE))
    else:
        line = report.summary_line(curves, sys.stdout)
        print(f"{PREFIX}{line or 'too few values to judge: a curve needs some steps.'}")
        for note in curves.notes[:4]:
            print(f"note: {note}")
    if asked.full:
        print(f"\n{report.table(curves, sys.stdout)}")


def _curves_line(curves: CurveReading, reading: Reading) -> str:
    """Return a finding of the curves below another answer; if no failure is known, what they show."""
    from dtdebug.recorded.curves import report
    from dtdebug_taxonomy.logs.log_end import is_stop
    from dtdebug_taxonomy.model.status import CLEAR

    if curves.findings:
        return report.also_line(curves)
    calm = reading.status in {*CLEAR, "program_error"} or is_stop(reading.snapshot.verdict)
    return report.summary_line(curves, sys.stdout) if calm else ""


def _save(reading: Reading) -> None:
    """Keep what was found, for `dtdebug why` and `report`, and for the notebook whose cell has run this."""
    from dtdebug.storage.last_failure import LastFailure

    if _is_answered(reading):
        LastFailure(snapshot=reading.snapshot, diagnosis=reading.diagnosis).save()
    else:
        LastFailure.pass_over()


def _is_answered(reading: Reading) -> bool:
    """True if there is more to say than that nothing was found."""
    d = reading.diagnosis
    is_shown = any(a.grade in {"measured", "source"} for a in d.advice[:1])  # no guesses where nothing has failed
    return reading.found or bool(d.ordinary) or is_shown


def _print_logs(reading: Reading, asked: Asked, rows: Job | None) -> None:
    from dtdebug.presentation.terminal import answer_text, full_text, next_step
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug.recorded.job_logs import render
    from dtdebug_taxonomy.presentation.text import to_markdown

    snapshot, d, job, shown = reading.snapshot, reading.diagnosis, reading.job, rows or reading.job
    _save(reading)
    if asked.format == "markdown":
        print(to_markdown(d, mask_snapshot(snapshot)), end="")
        return
    event = render.first_event(job, d) if job is not None else ""
    if shown is not None and (asked.full or asked.format == "html"):
        event = event or _event_of(reading).partition("\n")[0]
        print(_of_ranks(shown, reading, event, asked))
        return
    if job is not None or _is_answered(reading):
        step = next_step(_of_end(job)) if job is not None else None
        print(full_text(d) if asked.full else answer_text(d, snapshot, event=event, next_step=step))
    else:
        plain = reading.completed_line or reading.build_errors is not None
        print(f"dtdebug: {_event_of(reading)}" if plain else f"dtdebug: {_event_of(reading)}\n{_ASK}")
    if line := render.unread_line(reading.unread if shown is None else shown.unread):
        print(line)


def _of_end(job: Job) -> str:
    """Return what to do about an end from outside; "" for a job that was not ended so."""
    return f"{job.ended.action[:1].upper()}{job.ended.action[1:]}." if job.ended is not None else ""


def _of_ranks(job: Job, reading: Reading, event: str, asked: Asked) -> str:
    """Return what each rank of a job did, as text or as a page."""
    from dtdebug.recorded.job_logs import html, render

    if asked.format == "html":
        return html.html(job, render.to_text(job, reading.diagnosis, reading.seconds, event=event))
    return render.to_text(job, reading.diagnosis, reading.seconds, event=event, full=True)


def _event_of(reading: Reading) -> str:
    """Return what happened by one log, in one line, and below it that nothing known explains it."""
    from dtdebug_taxonomy.presentation.text import first_line

    d = reading.diagnosis
    if reading.found or d.ordinary:
        return first_line(d)
    if line := reading.completed_line:
        return f"No failure: the run says that its training was completed (line {line:,})."
    if (errors := reading.build_errors) is not None:
        from dtdebug.privacy.sanitize import clean

        rows = "".join(f"\n  {clean(row)}" for row in errors)
        return f"Not understood: this is the log of a build, not of training.{rows}"
    if reading.is_prose and not d.happened:
        from dtdebug_taxonomy.inference.scope import speaks_of_the_field

        return _TOO_LITTLE if speaks_of_the_field(reading.snapshot.situation) else _OUTSIDE
    if reading.is_complaint and not d.happened:
        return f"Not understood: the words report a failure, and nothing known stands in {_extent(reading.snapshot)}."
    if reading.status == "not_understood":
        from dtdebug.privacy.sanitize import one_line
        from dtdebug.recorded.job_logs import clearance

        number, words = reading.alarm
        if number:
            return f"Not understood: no step of a training is printed, and line {number:,} says: {one_line(words, 200)}"
        return clearance.not_understood(reading.share)
    if not d.happened:
        measure = f": {reading.share.words}" if reading.share.lines else ""
        what = "what was read of " if reading.unread else ""
        return f"No known failure in {what}{_extent(reading.snapshot)}{measure}."
    share = reading.share
    what = "No known failure of distributed training" if share.is_enough else f"Not understood: {share.words}"
    return f"{d.happened}\n{what}: it may be the program's own."


def _extent(snapshot: Snapshot) -> str:
    """Return the number of lines of a log, and which of them were read if that is not all."""
    read = len(snapshot.output.splitlines())
    lines = snapshot.true_line(read)
    extent = f"{lines:,} line{'s' * (lines != 1)}"
    if not snapshot.first_lines or read >= lines:
        return extent
    begin, first = snapshot.first_lines[-1]
    last = f"the last {read - begin + 1:,}" if lines - first == read - begin else "its end"
    return f"{extent} (read: {last}, and of what is above them the first of each kind)"


def _record(reading: Reading, name: str, asked: Asked) -> dict[str, Any]:
    """Return the JSON form."""
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug.privacy.sanitize import clean
    from dtdebug_taxonomy.presentation.case_json import contract, of_text

    if reading.job is not None:
        from dtdebug.recorded.job_logs import render

        return render.data(reading.job, reading.diagnosis, found=reading.found)
    answers, unknown = parse_answers(asked.answers)
    questions = [{"key": k, "answer": v} for k, v in (*answers.items(), *((k, None) for k in unknown))]
    name = clean(name)
    case = contract(of_text(mask_snapshot(reading.snapshot), reading.diagnosis, name=name, size=reading.size))
    understood = {"status": reading.status, "understood": reading.share._asdict()}
    return {
        "id": name,
        **understood,
        **case,
        "questions": questions,
        "milliseconds": round(reading.seconds * 1000, 3),
    }
