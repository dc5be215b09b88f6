"""`dtdebug fix --try`: runs the job with a diff in a copy of the folder, and keeps in the answer what came of it."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.check.files import read_source
from dtdebug.errors import FOUND, NOTHING, UsageError
from dtdebug.experiments.isolate.failure_identity import FailureIdentity
from dtdebug.experiments.trial.patch import PatchError, apply_patch
from dtdebug.experiments.trial.trial import Trial, failure_of, try_fix
from dtdebug.privacy.sanitize import clean
from dtdebug.storage.last_failure import LastFailure
from dtdebug_taxonomy.checks.run.proving import format_patch
from dtdebug_taxonomy.diagnosis.diagnose import Diagnosis

_LONGEST = 3600.0


class _Change(NamedTuple):
    """Files with their new texts, by path below the working directory."""

    texts: dict[Path, str]
    of_failure: bool = False
    """It is the diff of the last failure's answer."""


def answer(options: argparse.Namespace, select: Sequence[str]) -> int:
    """Run the trial that the options ask for, print its result and return the exit status."""
    if options.write:
        raise UsageError("fix --try: --write is for afterwards")
    if not 0 < options.within <= _LONGEST:
        raise UsageError(f"fix --within {options.within:g}: more than 0 seconds, at most {_LONGEST:g}")
    if not sys.platform.startswith("linux"):
        raise UsageError("fix --try: works on Linux only")
    last = LastFailure.load()
    command = _command(options.command, last)
    home = Path.cwd()
    change = _of_files(options.paths, home, select) if options.paths else _of_failure(last, home)
    reference = _reference(last, command)
    print(f"# `{clean(shlex.join(command))}` in a copy of this folder, at most {options.within:g} s", flush=True)
    _print_diffs(change, home)
    trial = try_fix(command, home, change.texts, reference, options.within)
    proven = trial.outcome == "works"
    print(clean(f"{'Proven' if proven else 'Not proven'}: {trial.text}."))
    if change.of_failure and last is not None and trial.outcome != "unfailing":
        _keep(last, trial)
    return NOTHING if proven else FOUND


def _command(words: Sequence[str], last: LastFailure | None) -> tuple[str, ...]:
    """Return the command to run: as given, or that of the last failure."""
    command = tuple(words) or (last.snapshot.command if last is not None else ())
    if not command:
        raise UsageError("fix --try: name the job, as in `dtdebug fix --try -- torchrun --nproc-per-node 2 train.py`")
    if shutil.which(command[0]) is None:
        raise UsageError(f"fix --try: {command[0]}: command not found")
    return command


def _reference(last: LastFailure | None, command: Sequence[str]) -> FailureIdentity | None:
    return failure_of(last) if last is not None and tuple(last.snapshot.command) == tuple(command) else None


def _of_failure(last: LastFailure | None, home: Path) -> _Change:
    """Return the diff of the last failure's first cause, applied to the file as it is now."""
    cause = next((a for a in last.diagnosis.advice[:1] if a.diff_of == "yours" and a.diff), None) if last else None
    if cause is None:
        raise UsageError("fix --try: the last answer has no diff of your files; name a file whose findings are fixed")
    path = Path(cause.file)
    file = path if path.is_absolute() else home / path
    name = _below(file, home)
    try:
        return _Change({name: apply_patch(read_source(file).text, cause.diff)}, of_failure=True)
    except PatchError as error:
        raise UsageError(f"fix --try: {clean(str(name))}: {error}") from None
    except OSError as error:
        raise UsageError(f"fix --try: {clean(str(file))}: can't be read: {error.strerror}") from None


def _of_files(paths: Sequence[Path], home: Path, select: Sequence[str]) -> _Change:
    """Return files with the fixes of their findings."""
    from dtdebug.check.fixes import fix_file
    from dtdebug.cli.check import find_files

    texts = {}
    for path in find_files(paths, "fix"):
        if path.suffix == ".ipynb":
            continue
        for one in fix_file(path, select):
            if one.after != one.before:
                texts[_below(path.absolute(), home)] = one.after
    if not texts:
        raise UsageError("fix --try: nothing to fix in these files")
    return _Change(texts)


def _below(file: Path, home: Path) -> Path:
    try:
        return Path(os.path.realpath(file)).relative_to(os.path.realpath(home))
    except ValueError:
        raise UsageError(f"fix --try: {clean(str(file))} is not in this folder, which is what is copied") from None


def _print_diffs(change: _Change, home: Path) -> None:
    for name, text in change.texts.items():
        patch = format_patch(name.as_posix(), read_source(home / name).text, text)
        hidden = f"# the diff of {clean(str(name))} holds what looks like a secret: it is not shown\n"
        print(patch if clean(patch) == patch else hidden, end="", flush=True)


def _keep(last: LastFailure, trial: Trial) -> None:
    """Add the result to the stored answer, and to the folder of the run that it came from."""
    from dtdebug.live.job.conclude import load_case
    from dtdebug.live.job.recent_runs import newest
    from dtdebug.storage import state_dir

    msgspec.structs.replace(last, diagnosis=_with_trial(last.diagnosis, trial)).save()
    folder = newest()
    case = load_case(folder) if folder is not None else None
    if (
        folder is None
        or case is None
        or case.diagnosis is None
        or case.diagnosis.advice[:1] != last.diagnosis.advice[:1]
    ):
        return
    with suppress(OSError):
        known = msgspec.structs.replace(case, diagnosis=_with_trial(case.diagnosis, trial))
        state_dir.write(folder.verdict, msgspec.json.encode(known))


def _with_trial(d: Diagnosis, trial: Trial) -> Diagnosis:
    cause = msgspec.structs.replace(d.advice[0], tried=trial.text, works=trial.outcome == "works")
    return msgspec.structs.replace(d, advice=(cause, *d.advice[1:]))
