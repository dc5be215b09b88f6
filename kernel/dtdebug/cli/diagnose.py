"""`dtdebug diagnose`: diagnoses a log, a pasted error or a description; or many of them at once.

Its imports are deferred until it is called: an answer comes within a second of the command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError

if TYPE_CHECKING:
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.logs.tasks import Surroundings
    from dtdebug_taxonomy.model.snapshot import Snapshot

_WAITED = "Watchdog caught collective operation timeout"
"""Messages of ranks that wait for another one: then it matters which ranks do not print them."""


class _Tee:
    """Stream that copies to another what is read from it."""

    def __init__(self, stream: BinaryIO, out: BinaryIO) -> None:
        self._stream, self._out = stream, out

    def read(self, size: int) -> bytes:
        chunk = self._stream.read1(size) if hasattr(self._stream, "read1") else self._stream.read(size)
        self._out.write(chunk)
        self._out.flush()
        return chunk


def _exclusive(file: str, one: int, other: int) -> bool | None:
    """Compare the branches that two ranks take in a file; imported late, because it is seldom needed."""
    from dtdebug.recorded.flight_recorder.source_branches import exclusive

    return exclusive(file, one, other)


def _around(log: str) -> Surroundings:
    """Return what the lines of a long log say of its ranks that its excerpt does not hold."""
    from dtdebug.recorded.job_logs.api import read_part
    from dtdebug.recorded.job_logs.surroundings import of_part

    return of_part(read_part([log], 1))


def snapshot_of(log: str | None, situation: str, *, tee: bool = False) -> tuple[Any, int]:
    """Return a snapshot of a log and a description, and the size of the whole log in bytes."""
    import msgspec

    from dtdebug.privacy.sanitize import plain
    from dtdebug.recorded.log_files import excerpt as log_excerpt
    from dtdebug_taxonomy.logs.split_failures import split_failures
    from dtdebug_taxonomy.logs.split_post import split_prose
    from dtdebug_taxonomy.logs.tasks import NO_SURROUNDINGS
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.verdicts.from_log import verdict_of_log

    if log is None:
        excerpt = log_excerpt.Excerpt("", (), 0)
    elif log == "-":
        stream: Any = _Tee(sys.stdin.buffer, sys.stdout.buffer) if tee else sys.stdin.buffer
        excerpt = log_excerpt.read_excerpt(stream, "standard input")
    else:
        excerpt = log_excerpt.read_path(Path(log))
    if log is not None and not excerpt.text.strip() and not situation:
        name = "standard input" if log == "-" else log
        raise UsageError(f"{name}: is empty; describe what you see with --situation, or run `dtdebug wizard`")
    output = plain(excerpt.text)
    if not situation:  # a pasted thread that contains a log is split into both
        situation, output = split_prose(output)
    snapshot = Snapshot(situation=plain(situation), output=output, source=log or "", first_lines=excerpt.first_lines)
    from dtdebug.account.printed import with_accounts
    from dtdebug.check.stack_files import sourced_snapshot

    around = _around(log) if log not in (None, "-") and excerpt.first_lines and _WAITED in output else NO_SURROUNDINGS
    first, *later = (
        with_accounts(
            sourced_snapshot(msgspec.structs.replace(part, verdict=verdict_of_log(part, _exclusive, around=around)))
        )
        for part in split_failures(snapshot)
    )
    return msgspec.structs.replace(first, later=tuple(later)), excerpt.size


def is_job(log: str) -> bool:
    """True for a folder or an archive: the logs of a job, not one log."""
    return log != "-" and (Path(log).is_dir() or log.endswith((".gz", ".zst", ".xz", ".bz2", ".tar", ".tgz")))


def _answers(pairs: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
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


def diagnose(options: argparse.Namespace) -> int:  # noqa: PLR0915 - each way of printing once
    """Print the diagnosis; return 1 if something is found."""
    if options.batch:
        return _batch(options.batch, options.questions)
    if options.log is None and not options.situation:
        raise UsageError("diagnose: name a log file, or - for standard input, or describe it with --situation")
    import time

    if options.log is not None and is_job(options.log):
        from dtdebug.recorded.job_logs import api as triage

        began, form = time.perf_counter(), "json" if options.format == "json" else "text"
        job = triage.job_of(triage.read_part([options.log]), options.situation)
        return triage.say(job, began, form, *_answers(options.answer))
    import msgspec

    from dtdebug.privacy.boundary import diagnose as diagnosis_of
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.diagnosis.out_of_scope import complains
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.logs.log_end import is_stop
    from dtdebug_taxonomy.logs.split_post import only_words
    from dtdebug_taxonomy.presentation.text import to_markdown, to_text

    answers, unknown = _answers(options.answer)
    knowledge = load()
    begin = time.perf_counter()
    snapshot, size = snapshot_of(options.log, options.situation, tee=options.tee)
    snapshot = with_doctor(snapshot) if options.doctor else snapshot
    d = diagnosis_of(knowledge, snapshot, answers, unknown)
    words, left = only_words(snapshot.output)
    if complains(words) and not (d.recognised or d.ordinary or snapshot.situation):
        described = msgspec.structs.replace(snapshot, situation=words, output=left)
        again = diagnosis_of(knowledge, described, answers, unknown)
        snapshot, d = (described, again) if _tells(again) else (snapshot, d)
    if not (_tells(d) or d.ordinary or snapshot.situation):
        snapshot = _with_stop(snapshot)
        d = d if snapshot.verdict is None else diagnosis_of(knowledge, snapshot, answers, unknown)
    spent = (time.perf_counter() - begin) * 1000
    found = _tells(d) or is_stop(snapshot.verdict)
    if found:  # for `dtdebug report`, and for the notebook whose cell has run this
        LastFailure(snapshot=snapshot, diagnosis=d).save()
    if options.format == "json":
        from dtdebug_taxonomy.presentation.case_json import contract, of_text

        asked = [{"key": k, "answer": v} for k, v in (*answers.items(), *((k, None) for k in unknown))]
        case = contract(of_text(mask_snapshot(snapshot), d, name=options.log or "", size=size))
        record = {"id": options.log or "", **case, "questions": asked, "milliseconds": round(spent, 3)}
        print(msgspec.json.encode(record).decode())
    elif options.format == "markdown":
        print(to_markdown(d, mask_snapshot(snapshot)), end="")
    elif not (found or d.ordinary):
        if d.happened:
            print(f"dtdebug: {d.happened}")
            print("  Not understood: no known fault of distributed training prints this; it may be the program's own.")
        else:
            print("dtdebug: nothing here is recognised as a fault of distributed training.")
        print("  Describe what you see (--situation TEXT), or let `dtdebug wizard` ask.")
    else:
        print(to_text(d))
    return FOUND if found else NOTHING


def _with_stop(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with the verdict that its log just stops, if nothing else is known of it."""
    import msgspec

    from dtdebug_taxonomy.logs.log import read_output
    from dtdebug_taxonomy.logs.log_end import stopped_log

    stopped = stopped_log(read_output(snapshot)) if snapshot.verdict is None else None
    return snapshot if stopped is None else msgspec.structs.replace(snapshot, verdict=stopped)


def _tells(d: Diagnosis) -> bool:
    return d.recognised or d.verdict != "unknown" or any(_tells(each) for each in d.later)


def _batch(path: str, questions: int) -> int:
    import io

    import msgspec

    from dtdebug.storage import safe_open
    from dtdebug_taxonomy.diagnosis.batch import run_case
    from dtdebug_taxonomy.knowledge.loader import load

    if questions < 0:
        raise UsageError(f"--questions {questions}: 0 or more")
    try:
        lines = sys.stdin.buffer if path == "-" else io.BufferedReader(safe_open.log(path, pipes=True))
    except OSError as error:
        raise UsageError(f"{path}: can't be read: {error.strerror}") from None
    knowledge, bad = load(), 0
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                result = run_case(knowledge, msgspec.json.decode(line, type=dict[str, Any]), questions)
            except ValueError as error:
                from dtdebug.privacy.sanitize import complain

                bad += 1
                complain(f"{path}:{number}: {error}; case left out")
                continue
            sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
    return USAGE if bad else NOTHING


def with_doctor(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot with the measurements of `dtdebug doctor` within the last hour."""
    import msgspec

    from dtdebug.storage import doctor_result

    return msgspec.structs.replace(snapshot, examined=doctor_result.last_measured())
