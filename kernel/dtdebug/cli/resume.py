"""Implements `dtdebug run --resume-check`: does the job go on where it stopped?"""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dtdebug.errors import FOUND, NOTHING, UsageError

if TYPE_CHECKING:
    from dtdebug.experiments.resume.answer import Wording

V = 1
"""Version of the JSON."""


def add_options(run: argparse.ArgumentParser) -> None:
    """Add the options of `dtdebug run`."""
    group = run.add_argument_group("does it go on where it stopped?")
    group.add_argument(
        "--resume-check",
        action="store_true",
        help="run it three times in a copy of this folder: twice as it is, then from what it saved; say what differs",
    )
    group.add_argument(
        "--resume-args",
        default="",
        metavar="'--resume PATH'",
        help="how the program resumes, if it does not by itself; {saved} stands for the path that it saved first "
        "(default: the option in its source)",
    )
    group.add_argument("--resume-after", type=int, default=2, metavar="STEPS", help="before the save (default 2)")
    group.add_argument("--resume-steps", type=int, default=5, metavar="STEPS", help="to compare (default 5)")
    group.add_argument("--resume-ranks", type=int, metavar="N", help="resume with this number of ranks per host")
    group.add_argument(
        "--resume-timeout", type=float, default=600.0, metavar="SECONDS", help="of each of the runs (default 600)"
    )


def check(options: argparse.Namespace, command: Sequence[str]) -> int:
    """Make the runs, and print the answer."""
    from dtdebug.experiments.resume.answer import Wording
    from dtdebug.experiments.resume.compare import compare
    from dtdebug.experiments.resume.runs import Plan, RunFolder
    from dtdebug.presentation.terminal import code_at, format_answer

    if shutil.which(command[0]) is None:
        raise UsageError(f"run --resume-check: {command[0]}: command not found")
    for name, value in (("after", options.resume_after), ("steps", options.resume_steps)):
        if not 0 < value <= 10_000:
            raise UsageError(f"run --resume-{name} {value}: 1 to 10000 steps")
    if options.resume_ranks is not None and not 0 < options.resume_ranks <= 1024:
        raise UsageError(f"run --resume-ranks {options.resume_ranks}: 1 to 1024 ranks")
    if not 0 < options.resume_timeout < float("inf"):
        raise UsageError(f"run --resume-timeout {options.resume_timeout:g}: more than 0 seconds")
    try:
        words = tuple(shlex.split(options.resume_args))
    except ValueError as error:
        raise UsageError(f"run --resume-args {options.resume_args}: {error}") from None
    plan = Plan(
        steps=options.resume_steps,
        after=options.resume_after,
        timeout=options.resume_timeout,
        resume_arguments=words,
        ranks=options.resume_ranks,
    )
    home = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="dtdebug-resume-", ignore_cleanup_errors=True) as place:
        runs = RunFolder(command, home, Path(place).resolve(), plan).check(_say)
    found = compare(runs)
    wording = Wording(runs, found, str(home), code_at)
    answer = wording.answer()
    wrong = bool(found.differences) or not found.steps
    kept = _keep(wording, command)
    if options.format == "json":
        told = {
            "v": V, "answer": msgspec.to_builtins(answer), "same": not wrong, "saved_after_step": runs.saved_at,
            "differences": msgspec.to_builtins(found.differences), "compared": found.compared,
            "excluded": found.excluded, "steps": found.steps, "ranks": found.ranks, "command": runs.command,
            "seconds": runs.seconds,
        }  # fmt: skip
        text = msgspec.json.encode(told).decode()
    else:
        text = format_answer(answer, sys.stdout, more="" if kept else "more: --format json")
    if options.output:
        options.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)
    return FOUND if wrong else NOTHING


_SITUATION = "Training resumed from a checkpoint gives wrong results: it differs from the run without interruption."
_MEASURED = {"manifestation": ("wrong_numbers", "a resumed run, compared with one that was not interrupted")}


def _keep(wording: Wording, command: Sequence[str]) -> bool:
    """Keep what was measured as the last failure, for `dtdebug why`; False if nothing differs."""
    from dtdebug.privacy.boundary import diagnose
    from dtdebug.privacy.sanitize import arguments, clean
    from dtdebug.storage.last_failure import LastFailure
    from dtdebug_taxonomy.knowledge.loader import load
    from dtdebug_taxonomy.model.snapshot import Snapshot

    result = wording.result()
    if result is None:
        return False
    words = tuple(clean(word) for word in arguments(command))
    snapshot = Snapshot(situation=_SITUATION, command=words, isolated=result, contrasts=_MEASURED)
    return LastFailure(snapshot=snapshot, diagnosis=diagnose(load(), snapshot, {})).save()


def _say(text: str) -> None:
    print(f"dtdebug: {text}", file=sys.stderr, flush=True)
