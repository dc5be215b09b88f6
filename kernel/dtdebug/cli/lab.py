"""Sub-command `dtdebug lab`: learn by breaking."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.errors import FOUND, NOTHING, UsageError

if TYPE_CHECKING:
    from dtdebug.learn.labs.execute import LabRun
    from dtdebug.learn.labs.progress import LabProgress, StartedLab
    from dtdebug.learn.labs.verify import HalfResult
    from dtdebug_taxonomy.knowledge.labs import Lab


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    lab = commands.add_parser(
        "lab",
        help="learn by breaking: real failing runs to diagnose and fix",
        description="Small distributed trainings with one fault each. `start` copies one to your folder and runs it; "
        "you fix the file; `check` runs your file.",
        epilog="Example: `dtdebug lab start uneven-batches`. Exit status: 0 it works, 1 it does not, 2 usage error, "
        "or this machine can't run it.",
    )
    verbs = lab.add_subparsers(required=True, metavar="VERB")

    listing = verbs.add_parser("list", help="list the labs and which of them you have solved")
    listing.add_argument("--format", choices=("text", "json"), default="text")
    listing.set_defaults(run=_list)

    start = verbs.add_parser("start", help="copy a lab to a folder and watch it fail")
    start.add_argument("lab", metavar="ID", help="as `dtdebug lab list` shows it")
    start.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="default: a new folder named after the lab")
    start.set_defaults(run=_start)

    hint = verbs.add_parser("hint", help="the next hint: from vague to exact, and finally the fix")
    hint.add_argument("lab", nargs="?", metavar="ID", help="default: the lab that was started last")
    hint.set_defaults(run=_hint)

    check = verbs.add_parser("check", help="run your file and see whether the fault is gone")
    check.add_argument("lab", nargs="?", metavar="ID", help="default: the lab that was started last")
    check.set_defaults(run=_check)

    verify = verbs.add_parser("verify", help="does a lab fail here, get its diagnosis, and work once fixed?")
    verify.add_argument("labs", nargs="*", metavar="ID", help="default: all that this machine can run")
    verify.add_argument("--format", choices=("text", "json"), default="text")
    verify.set_defaults(run=_verify)


_LISTED = (
    "id", "title", "symptom", "cause", "stage", "difficulty", "runs", "recorded", "framework", "ranks", "limit_s",
)  # fmt: skip


def _list(options: argparse.Namespace) -> int:
    from dtdebug.learn.labs.progress import LabProgress
    from dtdebug_taxonomy.knowledge.labs import load_labs

    labs = load_labs().values()
    if options.format == "json":
        import msgspec

        print(msgspec.json.encode({"labs": [{name: getattr(lab, name) for name in _LISTED} for lab in labs]}).decode())
        return 0
    from dtdebug_taxonomy.knowledge.loader import sort_key

    begun, width = LabProgress.load().labs, max(len(lab.id) for lab in labs)
    for lab in sorted(labs, key=lambda lab: (sort_key(lab.symptom), lab.id)):
        mark = "solved" if lab.id in begun and begun[lab.id].solved else "begun" if lab.id in begun else ""
        print(f"{lab.symptom:<7} {lab.id:<{width}} {lab.difficulty:<7} {lab.runs:<4} {mark:<7} {lab.title}".rstrip())
    return 0


def _start(options: argparse.Namespace) -> int:
    from dtdebug.learn.labs.execute import execute
    from dtdebug.learn.labs.progress import LabProgress
    from dtdebug.learn.labs.verify import lay_out
    from dtdebug_taxonomy.knowledge.labs import BEFORE

    lab = _runnable_lab(options.lab)
    folder = options.folder or Path(f"dtdebug-lab-{lab.id}")
    try:
        script = lay_out(lab, BEFORE, folder.absolute())
    except FileExistsError as error:
        raise UsageError(
            f"lab start: {error.filename}: already exists and is left as it is; `dtdebug lab check` runs it, "
            "or name another folder"
        ) from None
    except OSError as error:
        raise UsageError(f"lab start: {folder}: can't be written: {error.strerror}") from None
    progress = LabProgress.load()
    progress.begin(lab.id, folder)
    progress.save()
    print(f"{lab.title}: {script} ({lab.ranks} ranks)\n$ {_command(lab, script)}", flush=True)
    ran = execute(lab, script, show=True)
    if ran.works(lab):
        print("It works here, although it should fail.")
        return 2
    print(_account(lab, ran))
    if lab.says:
        from dtdebug.learn.labs.verify import diagnosis_of_run
        from dtdebug_taxonomy.presentation import text

        print(f"What its user says: {lab.says}\n{text.to_text(diagnosis_of_run(lab, ran))}")
    print(f"Now fix {script}, then `dtdebug lab check`; `dtdebug lab hint` gives a hint.")
    return 0


def _account(lab: Lab, ran: LabRun) -> str:
    from dtdebug.live.job.run_job import STOPPED

    status = ran.status
    if status is None:
        return f"It was ended after {lab.limit_s:g} s."
    if status == STOPPED:
        return "It hung and was ended."
    if ran.violated:
        return f"It ended without an error, and did not train as it should: {ran.violated[0].means}"
    if status == 0:
        return f"It ended without an error, but did not print {lab.works!r}."
    return f"It failed (exit status {status})."


def _hint(options: argparse.Namespace) -> int:
    from dtdebug_taxonomy.knowledge.labs import lab_diff

    lab, begun, progress = _started_lab(options.lab, "hint")
    begun.hints += 1
    if begun.hints <= len(lab.hints):
        print(f"hint {begun.hints} of {len(lab.hints)}: {lab.hints[begun.hints - 1]}")
    else:
        print(f"The fix:\n{lab_diff(lab.id, lab.script)}", end="")
    progress.save()
    return 0


def _check(options: argparse.Namespace) -> int:
    from dtdebug.learn.labs.execute import execute

    lab, begun, progress = _started_lab(options.lab, "check")
    script = Path(begun.folder) / lab.script
    if not script.is_file():
        raise UsageError(f"lab check: {script}: does not exist; `dtdebug lab start {lab.id} DIR` copies it anew")
    print(f"$ {_command(lab, script)}", flush=True)
    ran = execute(lab, script, show=True)
    begun.tries += 1
    if ran.works(lab):
        begun.solved = True
        print(f"Solved: {lab.title}.\n{lab.why}")
    else:
        print(f"Not yet. {_account(lab, ran)} `dtdebug lab hint` gives a hint.")
    progress.save()
    return NOTHING if ran.works(lab) else FOUND


def _verify(options: argparse.Namespace) -> int:
    from dtdebug.learn.labs.requirements import what_is_missing
    from dtdebug.learn.labs.verify import verify
    from dtdebug_taxonomy.knowledge.labs import load_lab, load_labs

    labs = [load_lab(name) for name in options.labs] or list(load_labs().values())
    status = 0
    halves: list[tuple[str, HalfResult]] = []
    for lab in labs:
        if missing := what_is_missing(lab):
            print(f"dtdebug: lab {lab.id}: {missing}", file=sys.stderr)
            status = max(status, 2 if options.labs else 0)
            continue
        for half in verify(lab):
            halves.append((lab.id, half))
            if options.format == "text":
                _show(lab.id, half)
    if options.format == "json":
        import msgspec

        rows = [{"id": name, **msgspec.structs.asdict(half)} for name, half in halves]
        print(msgspec.json.encode({"runs": rows}).decode())
    return max(status, int(not all(half.ok for _, half in halves)))


def _show(name: str, half: HalfResult) -> None:
    """Print one line, and the end of the output of a lab that did not do what it should."""
    from dtdebug.privacy.sanitize import clean

    print(f"{'ok ' if half.ok else 'BAD'} {name} {half.file} {half.seconds:5.1f} s: {half.text}", flush=True)
    if not half.ok:
        print("\n".join(f"    | {line}" for line in clean(half.output).splitlines()[-12:]), flush=True)


def _runnable_lab(name: str) -> Lab:
    """Return a lab that this machine can run."""
    from dtdebug.learn.labs.requirements import what_is_missing
    from dtdebug_taxonomy.knowledge.labs import load_lab

    lab = load_lab(name)
    if missing := what_is_missing(lab):
        raise UsageError(f"lab {lab.id}: {missing}")
    return lab


def _started_lab(name: str | None, verb: str) -> tuple[Lab, StartedLab, LabProgress]:
    """Return a lab that was started: the named one, else the last one."""
    from dtdebug.learn.labs.progress import LabProgress

    progress = LabProgress.load()
    name = name or progress.current
    if not name:
        raise UsageError(f"lab {verb}: no lab was started; `dtdebug lab start ID` does")
    lab = _runnable_lab(name)
    if name not in progress.labs:
        raise UsageError(f"lab {verb}: {name} was not started; `dtdebug lab start {name}` does")
    return lab, progress.labs[name], progress


def _command(lab: Lab, script: Path) -> str:
    """Return the command as a user would type it."""
    import shlex

    from dtdebug.learn.labs.execute import command

    return shlex.join(command(lab, script, "python")).replace("python -m torch.distributed.run", "torchrun")
