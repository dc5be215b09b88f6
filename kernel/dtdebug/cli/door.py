"""The one way from what a user names to the answer: every command that states a failure goes through here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dtdebug.cli.readings import Asked
from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.presentation.terminal import answer_text, full_text, next_step, say_aside
from dtdebug.privacy.sanitize import one_line
from dtdebug.recorded.things import Kind, Thing, recognise

if TYPE_CHECKING:
    from dtdebug.live.job.saved_case import Saved
    from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis
    from dtdebug_taxonomy.model.answer import Step
    from dtdebug_taxonomy.model.ranks import Verdict
    from dtdebug_taxonomy.model.snapshot import Snapshot
    from dtdebug_taxonomy.presentation.case_json import Case

_SAVED: tuple[Kind, ...] = ("run", "archive", "answer")
_DUMPS: tuple[Kind, ...] = ("dump", "dumps")
_LOGS: tuple[Kind, ...] = ("log", "logs")
_PROGRAMS: tuple[Kind, ...] = ("program", "notebook")
_SHOWN = 3
_LARGEST = 64 << 20
"""Maximum number of characters of a status of NCCL's RAS."""
_NOTEBOOK, _PRINTED = 32 << 20, 1 << 20
"""Maximum characters of a notebook that was given for its failed cell, and of what that cell printed."""


def answer(words: Sequence[str], asked: Asked, *, aside: bool = True) -> int:
    """Answer for all that the words name, as for one failure; return the exit status.

    Raises:
        UsageError: they name nothing, or what can't be of one failure.

    """
    things = recognise(words)
    if aside:
        for thing in things[:_SHOWN]:
            if thing.is_guess and thing.kind not in ("words", "process"):
                say_aside(f"reading {one_line(thing.name, 120) if thing.name != '-' else 'this'} as {thing.words}")
        if len(things) > _SHOWN:
            say_aside(f"and {len(things) - _SHOWN} more")
    said = [thing.name for thing in things if thing.kind == "words"]
    asked = asked._replace(situation=" ".join(filter(None, (asked.situation, *said))))
    things = [thing for thing in things if thing.kind != "words"]
    return answer_things(things, asked)


def answer_things(things: Sequence[Thing], asked: Asked) -> int:
    """Answer for things that have been recognised, as for one failure; return the exit status."""

    def of(*kinds: Kind) -> list[Thing]:
        return [thing for thing in things if thing.kind in kinds]

    for alone, what in (
        (("process",), "is running"), (_PROGRAMS, "is code"), (("trace", "traces"), "is for finding what is slow"),
        (("recording",), "is to be compared with another recording"),
    ):  # fmt: skip
        chosen = of(*alone)
        if chosen and (other := next((t for t in things if t.kind not in alone), None)):
            one, rest = one_line(chosen[0].name, 100), one_line(other.name, 100)
            raise UsageError(f"{one} {what}, {rest} is {other.words}: give them in two calls")
    if named := of("process"):
        return _attach(named, asked)
    if named := of(*_PROGRAMS):
        failed = [text for thing in named if thing.kind == "notebook" and (text := _failed_cells(thing.path))]
        return _of_text("\n".join(failed), named[0], asked) if failed else _check(named)
    if named := of("trace", "traces"):
        return _slow(named, asked)
    if named := of("recording"):
        return _compare(named, asked)
    saved, dumps, logs, curves = of(*_SAVED), of(*_DUMPS), of(*_LOGS), of("curves")
    if curves and not (saved or dumps or logs):
        return _of_curves(curves, asked)
    if saved:
        return _of_saved(saved, dumps, logs, asked)
    if dumps:
        return show_case(_of_dumps(dumps, logs, asked), asked, what=_dumps_words(dumps))
    if ras := of("ras"):
        return _of_ras(ras, asked)
    if stacks := of("stacks"):
        return _of_stacks(stacks, logs, asked)
    from dtdebug.cli.reading_view import answer_logs

    return answer_logs(_log_paths(logs), asked, metrics=_log_paths(curves))


def _of_curves(named: Sequence[Thing], asked: Asked) -> int:
    """Answer for files that hold nothing but curves."""
    from dtdebug.cli.reading_view import print_curves
    from dtdebug.recorded.curves import report

    reading = report.read(_log_paths(named))
    if not reading.curves:
        raise UsageError(f"{one_line(named[0].name, 200)}: holds no loss, norm, rate or time of steps")
    print_curves(reading, asked)
    return FOUND if reading.faulty else NOTHING


def failure_of(word: str | None, situation: str = "") -> tuple[Snapshot, Diagnosis]:
    """Return what is known of the failure that a word names, or that is only described; raises UsageError."""
    from dtdebug.cli.readings import read_logs
    from dtdebug.recorded.logs import Logs

    asked = Asked(situation=situation)
    things = recognise([word]) if word is not None else []
    known = [thing for thing in things if thing.kind in (*_SAVED, *_DUMPS)]
    if not known:
        reading = read_logs(Logs(_log_paths(things)), asked)
        return reading.snapshot, reading.diagnosis
    found = read_saved(known[0]) if known[0].kind in _SAVED else _of_dumps(known, (), asked)
    case = found.case
    if case.diagnosis is None or situation:
        case = _diagnose(case, found.snapshot, asked)
    return found.snapshot, cast("Diagnosis", case.diagnosis)


def _log_paths(logs: Sequence[Thing]) -> list[str]:
    return list(dict.fromkeys(file for thing in logs for file in (thing.files or (thing.name,))))


def _dumps_words(dumps: Sequence[Thing]) -> str:
    return f"dumps in {one_line(dumps[0].name, 200)}" if dumps[0].kind == "dumps" else f"{len(dumps)} dumps"


def show_case(saved: Saved, asked: Asked, *, what: str = "", known: bool = True) -> int:
    """Print a case; return the exit status, which shows whether something is to blame.

    `known`: the failure is to be remembered as the last one.
    """
    from dtdebug.live.job import report
    from dtdebug.privacy.boundary import mask_snapshot
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.presentation.case_json import contract
    from dtdebug_taxonomy.presentation.text import to_markdown

    case, snapshot = saved.case, saved.snapshot
    recognised = saved.of_text and case.diagnosis is not None and case.diagnosis.recognised
    failed = case.verdict.kind != "none" or bool(case.watch) or recognised
    if failed and (case.diagnosis is None or asked.answers or asked.situation):
        case = _diagnose(case, snapshot, asked)
    if case.diagnosis is not None and failed and known:
        LastFailure(snapshot=snapshot, diagnosis=case.diagnosis).save()
    if asked.format == "json":
        print(msgspec.json.encode(contract(case)).decode())
    elif asked.format == "markdown" and case.diagnosis is not None:
        print(to_markdown(case.diagnosis, mask_snapshot(snapshot)), end="")
    else:
        of_text = saved.of_text and case.diagnosis is not None
        if case.diagnosis is None or (asked.full and not of_text):
            print(report.to_text(case, what, saved.folder), end="")
        elif asked.full:
            print(full_text(case.diagnosis))
        else:
            event = "" if of_text else report.first_line(case, what)
            folder = str(saved.folder.path) if saved.folder is not None else ""
            print(answer_text(case.diagnosis, snapshot, event=event, next_step=_step(case), collected=folder))
    return FOUND if failed else NOTHING


def _step(case: Case) -> Step | None:
    """Return the next step: first, the ranks that were not reached are asked."""
    if not case.unanswered:
        return next_step(case.next)
    from dtdebug_taxonomy.model.answer import Step
    from dtdebug_taxonomy.model.rank_ranges import spell

    silent = f"no answer of {spell(case.unanswered)}"
    if not case.commands:
        return Step(text=f"{silent}: --host NAME names another host where it may be.")
    more = f" (and {len(case.commands) - 1} more, see --full)" if len(case.commands) > 1 else ""
    return Step(text=f"{silent}; to ask on other hosts{more} (--go runs this):", command=case.commands[0])


def _diagnose(case: Case, snapshot: Snapshot, asked: Asked) -> Case:
    from dtdebug.account.printed import with_program
    from dtdebug.cli.readings import parse_answers
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.privacy.sanitize import plain
    from dtdebug_taxonomy.knowledge.loader import load

    described = with_program(msgspec.structs.replace(snapshot, situation=plain(asked.situation)))
    return msgspec.structs.replace(case, diagnosis=diagnose(load(), described, *parse_answers(asked.answers)))


def _of_saved(saved: Sequence[Thing], dumps: Sequence[Thing], logs: Sequence[Thing], asked: Asked) -> int:
    """Answer for runs, their archives and saved answers, with what else is there of the same failure."""
    if len(saved) > 1:
        found, what = _join_reports(saved)
    else:
        only = saved[0]
        if only.kind == "run" and not (dumps or logs) and _runs(only.path):
            return _attach([only], asked)
        found, what = read_saved(only), f"run {only.path.resolve().name}" if only.kind == "run" else ""
    more = [thing.name for thing in (*dumps, *logs)]
    if more:
        found = _complete(found, dumps, logs, asked, more)
    return show_case(found, asked, what=what)


def read_saved(thing: Thing) -> Saved:
    """Return what is known of one run, archive or answer; raises UsageError."""
    from dtdebug.live.job import saved_case
    from dtdebug.storage.run_folder import RunFolder

    try:
        if thing.kind == "run":
            return saved_case.of_run(RunFolder(thing.path))
        return saved_case.of_archive(thing.path) if thing.kind == "archive" else saved_case.of_answer(thing.path)
    except saved_case.SavedCaseError as error:
        raise UsageError(str(error)) from None


def _join_reports(saved: Sequence[Thing]) -> tuple[Saved, str]:
    """Return the case of the reports of several hosts, and its description."""
    from dtdebug.live.job import saved_case
    from dtdebug.live.job.join_reports import JoinError, join

    try:
        case = join([thing.path for thing in saved])
    except JoinError as error:
        raise UsageError(f"join: {error}") from None
    count = case.coverage.hosts
    return saved_case.Saved(case, saved_case.snapshot_of(case, None)), f"reports of {count} host{'s' * (count != 1)}"


def _complete(found: Saved, dumps: Sequence[Thing], logs: Sequence[Thing], asked: Asked, names: Sequence[str]) -> Saved:
    """Return a saved case with what dumps and logs show besides; their verdict counts only where it had none."""
    case, told = found.case, ", ".join(one_line(name, 60) for name in names[:_SHOWN])
    if dumps:
        more = _of_dumps(dumps, (), asked).case
        ours, theirs = case.coverage.expected, more.coverage.expected
        if ours and theirs and ours != theirs:
            raise UsageError(f"{one_line(dumps[0].name, 100)} is of a job of {theirs} ranks, the run of one of {ours}")
    if case.verdict.culprits or case.verdict.kind not in ("none", "not_understood"):
        note = f"the answer is that of the run, which saw its ranks alive; {told}: read too, and less is known there"
        return found._replace(case=msgspec.structs.replace(case, notes=(note, *case.notes)))
    other = _of_dumps(dumps, logs, asked) if dumps else _of_logs(logs)
    return other if other.case.verdict.culprits else found


def _of_dumps(dumps: Sequence[Thing], logs: Sequence[Thing], asked: Asked) -> Saved:
    """Return the case of flight-recorder dumps, with what logs of the same job show.

    Raises:
        UsageError: no dump can be read, or the logs are of another job.

    """
    from dtdebug.live.job import saved_case
    from dtdebug_taxonomy.presentation.case_json import Case

    if len(dumps) == 1 and dumps[0].kind == "dumps":
        of_run = None if logs else _run_of_dumps(dumps[0].path, asked.prefix)
        if of_run is not None:
            return of_run
    analysis = _analyse(dumps, asked.prefix)
    case = Case(
        verdict=analysis.verdict,
        coverage=analysis.coverage,
        next=analysis.next,
        missing_dumps=tuple(analysis.missing_dumps),
        notes=tuple(analysis.notes),
    )
    found = saved_case.Saved(case, saved_case.snapshot_of(case, None))
    return _with_logs(found, logs) if logs else found


def _analyse(dumps: Sequence[Thing], prefix: str | None) -> Any:
    import tempfile

    from dtdebug.recorded import flight_recorder

    with tempfile.TemporaryDirectory(prefix="dtdebug-") as scratch:
        folder = dumps[0].path
        if len(dumps) > 1 or dumps[0].kind == "dump":  # only these files, not what lies beside them
            folder = Path(scratch)
            for number, dump in enumerate(dumps):
                files = [dump.path] if dump.kind == "dump" else sorted(dump.path.iterdir())
                for file in files:
                    there = folder / file.name
                    (there if not there.exists() else folder / f"{number}-{file.name}").symlink_to(file.absolute())
        try:
            return flight_recorder.analyse(folder, prefix)
        except flight_recorder.FlightError as error:
            raise UsageError(f"flight: {error}") from None


def _run_of_dumps(dumps: Path, prefix: str | None) -> Saved | None:
    """Return the case of the run that the dumps belong to; alone they show less, and may mislead."""
    from dtdebug.live.job import conclude, saved_case
    from dtdebug.privacy.sanitize import clean
    from dtdebug.storage.run_folder import RunFolder

    run = RunFolder(dumps.absolute().parent)
    if prefix is not None or run.flight != dumps.absolute() or not run.ranks.is_dir():
        return None
    if conclude.load_saved_case(run) is None:
        return None
    found = saved_case.of_run(run).case
    note = f"this is what was found of the run {clean(str(run.path))}, which these dumps are a part of"
    case = msgspec.structs.replace(found, notes=(note, *found.notes))
    return saved_case.Saved(case, saved_case.snapshot_of(case, run))


def _of_ras(named: Sequence[Thing], asked: Asked) -> int:
    """Answer for what NCCL's RAS has printed, once or several times."""
    from dtdebug.live.job import saved_case
    from dtdebug.recorded.nccl_ras import RasError, read_status, verdict_of
    from dtdebug.storage import safe_open
    from dtdebug_taxonomy.presentation.case_json import Case

    statuses = []
    for file in (file for thing in named for file in (thing.files or (thing.name,))):
        try:
            statuses += read_status(safe_open.read_text(file, _LARGEST))
        except (OSError, RasError) as error:
            raise UsageError(f"{one_line(file, 200)}: {getattr(error, 'strerror', None) or error}") from None
    verdict, step = verdict_of(statuses)
    case = _diagnose(Case(verdict=verdict, next=step), saved_case.snapshot_of(Case(verdict=verdict), None), asked)
    return show_case(saved_case.Saved(case, saved_case.snapshot_of(case, None)), asked, what="NCCL's RAS")


def _of_stacks(stacks: Sequence[Thing], logs: Sequence[Thing], asked: Asked) -> int:
    """Answer for stacks in files, with the logs of the same job: what ended a rank comes before what waits for it."""
    from dtdebug.cli.saved_stacks import NOT_READ, case_of_stacks

    found = case_of_stacks([Path(file) for thing in stacks for file in (thing.files or (thing.name,))])
    if logs:
        printed = _of_logs(logs)
        theirs = printed.case.verdict
        if isinstance(found, str) or (theirs.culprits and _comes_first(theirs, found.case.verdict)):
            return show_case(printed, asked)
    if isinstance(found, str):
        print(f"dtdebug: {found}" if asked.format != "json" else msgspec.json.encode({"v": 1, "said": found}).decode())
        return FOUND if found.startswith(NOT_READ) else NOTHING
    return show_case(found, asked, what=f"stacks in {one_line(stacks[0].name, 200)}")


def _of_logs(logs: Sequence[Thing]) -> Saved:
    from dtdebug.cli.readings import read_logs
    from dtdebug.live.job import saved_case
    from dtdebug.recorded.logs import Logs

    failure = read_logs(Logs(_log_paths(logs)), Asked())
    return saved_case.Saved(saved_case.case_of(failure.snapshot, failure.diagnosis), failure.snapshot)


def _with_logs(found: Saved, logs: Sequence[Thing]) -> Saved:
    """Return the case of dumps completed by the logs of the job: what ended a rank comes before what waits for it."""
    printed = _of_logs(logs)
    ours, theirs = found.case.verdict, printed.snapshot.verdict
    ranks = {*ours.culprits, *ours.waiting}
    world = found.case.coverage.expected
    if theirs is not None and world and (beyond := [r for r in theirs.culprits if r >= world]):
        raise UsageError(
            f"{one_line(logs[0].name, 100)} names rank {beyond[0]}, the dumps are of a job of {world} ranks"
        )
    chosen = theirs if theirs is not None and _comes_first(theirs, ours) else ours
    output = printed.snapshot.output
    snapshot = msgspec.structs.replace(printed.snapshot, verdict=chosen)
    read = (*found.case.coverage.read, f"output, {output.count(chr(10))} lines")
    coverage = msgspec.structs.replace(found.case.coverage, read=read, ranks=max(found.case.coverage.ranks, len(ranks)))
    case = msgspec.structs.replace(found.case, verdict=chosen, coverage=coverage, diagnosis=None)
    return found._replace(case=case, snapshot=snapshot)


def _comes_first(printed: Verdict, dumped: Verdict) -> bool:
    """True if what was printed explains the wait that dumps show: an end comes before it, a watchdog after it."""
    if dumped.kind in ("none", "not_understood"):
        return printed.kind != "none"
    return printed.kind == "dead" and bool(printed.culprits) and any(c.what == "raised" for c in printed.claims)


def _of_text(text: str, thing: Thing, asked: Asked) -> int:
    from dtdebug.cli.reading_view import show_text

    return show_text(text, thing.name, asked)


def _failed_cells(path: Path) -> str:
    """Return what the cells of a notebook printed that ended with an exception, in the order they ran."""
    from dtdebug.storage import budget, safe_open

    try:
        data = safe_open.read_text(path, _NOTEBOOK).encode(errors="surrogatepass")
        if budget.json_memory(data) > budget.MEMORY:
            return ""
        form = msgspec.json.decode(data)
        cells = [cell for cell in form["cells"] if cell.get("cell_type") == "code"]
        failed = [c["outputs"] for c in cells if any(o.get("output_type") == "error" for o in c.get("outputs", ()))]
        texts: list[str] = []
        for output in failed[-1] if failed else ():
            told = output.get("text", output.get("traceback", ""))
            rows = [row for row in ([told] if isinstance(told, str) else told) if isinstance(row, str)]
            if not rows and output.get("output_type") == "error":
                rows = [f"{output.get('ename')}: {output.get('evalue')}"]
            texts.append(("" if "text" in output else "\n").join(rows))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return ""
    return "\n".join(texts)[-_PRINTED:]


def _runs(path: Path) -> bool:
    """True if the job of that folder still runs here."""
    from dtdebug.live.job import observe, recent_runs
    from dtdebug.storage.run_folder import RunFolder

    folder = RunFolder(path)
    return observe.alive(folder) or (folder.load_run() is not None and recent_runs.lives(folder))


def _attach(named: Sequence[Thing], asked: Asked) -> int:
    if len(named) > 1:
        raise UsageError(f"{len(named)} processes: name one; its launcher leads to all ranks")
    return _by_command(["attach", named[0].name], asked)


def _check(named: Sequence[Thing]) -> int:
    return _by_command(["check", *(thing.name for thing in named)], Asked())


def _compare(named: Sequence[Thing], asked: Asked) -> int:
    if len(named) != 2:
        raise UsageError("a recording of collectives is compared with another one: name two")
    return _by_command(["compare", *(thing.name for thing in named)], asked)


def _slow(named: Sequence[Thing], asked: Asked) -> int:
    files = [file for thing in named for file in (thing.files or (thing.name,))]
    return _by_command(["slow", *files], asked)


def _by_command(words: list[str], asked: Asked) -> int:
    from dtdebug.cli.verbs import parser

    words += ["--format", "json"] if asked.format == "json" else []
    words += ["--full"] if asked.full and words[0] == "attach" else []
    options = parser(only=words[0]).parse_args(words)
    status: int = options.run(options)
    return status
