"""Sub-command `dtdebug fix`: shows proven fixes of findings as patches of the user's files, or writes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtdebug.check.files import NotCheckedError, UnreadableError, read_source
from dtdebug.check.fixes import FixResult, fix_file
from dtdebug.check.time_limit import TakesTooLongError, time_limit
from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.privacy.sanitize import clean, complain
from dtdebug_taxonomy.checks.run.proving import format_patch
from dtdebug_taxonomy.source.notebook import NotebookError

_WITHIN = 120.0


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    fix = commands.add_parser(
        "fix",
        usage="%(prog)s [options] [PATH ...] [--try [-- COMMAND ...]]",
        help="show, write or try out the fixes of what `check` finds, as diffs of your files",
        description="Shows a diff of each file with the fixes of its findings. A fix is shown only if the file still "
        "parses with it, its finding is gone and no new one appears; the other findings follow with their lines. With "
        "--try it runs the job in a copy of this folder, with the diff of the last failure or those of the files, and "
        "says how it ends.",
        epilog="Examples: `dtdebug fix --write train.py`, `dtdebug fix --try -- torchrun train.py`. Exit status: 0 "
        "nothing to fix, or all shown fixes were written; 1 something to fix, or the diff that was tried did not help; "
        "2 usage error or unreadable input. Fixes marked `review` may change what a correct program does: --write "
        "leaves them out.",
    )
    fix.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: this folder)")
    fix.add_argument("--write", action="store_true", help="write the safe fixes into the files")
    fix.add_argument("--all", action="store_true", help="with --write: write those marked `review` too")
    fix.add_argument("--select", default="", metavar="IDS", help="only these: DT101,DT5,collective-under-rank-guard")
    fix.add_argument(
        "--within", type=float, default=_WITHIN, metavar="SECONDS", help=f"for --try: each run (default {_WITHIN:g})"
    )
    fix.add_argument(
        "--try",
        dest="trial",
        action="store_true",
        help="run the job with the diff in a copy of this folder: the command after `--`, or that of the last failure",
    )
    fix.takes_command = True
    fix.set_defaults(run=_fix)


def _fix(options: argparse.Namespace) -> int:
    from dtdebug.cli.check import find_files, parse_checks

    if options.command and not options.trial:
        raise UsageError("fix: a command is run with --try only, as in `dtdebug fix --try -- torchrun train.py`")
    if options.trial:
        from dtdebug.cli import fix_trial

        return fix_trial.answer(options, parse_checks(options.select, "fix --select"))
    select = parse_checks(options.select, "fix --select")
    paths = find_files(options.paths or [Path()], "fix")
    shown = written = rest = seen = 0
    status = NOTHING
    for path in paths:
        try:
            with time_limit(path.stat().st_size):
                done = fix_file(path, select, safe_only=options.write and not options.all)
            if options.write and path.suffix != ".ipynb":
                _write(path, done)
        except (UnreadableError, NotebookError, OSError, TakesTooLongError) as error:
            if isinstance(error, NotCheckedError) and path not in options.paths:
                continue
            text = str(error) or "takes too long to check, skipped"
            complain(text if text.startswith(f"{path}: ") else f"{path}: {text}")
            status = USAGE if path in options.paths else status
            continue
        seen += 1
        for one in done:
            show(one, written=options.write and path.suffix != ".ipynb")
            shown += len(one.changes)
            rest += len(one.rest)
            written += len(one.changes) if options.write and path.suffix != ".ipynb" else 0
    sys.stdout.flush()
    print(_summary(shown, written, rest, seen), file=sys.stderr)
    return status or (FOUND if shown > written or rest else NOTHING)


def _write(path: Path, done: Sequence[FixResult]) -> None:
    for one in done:
        if one.after != one.before:
            path.write_text(one.after, encoding=read_source(path).encoding, newline="")


def show(one: FixResult, *, written: bool) -> None:
    """Print the diff of a file below the names of its fixes."""
    for change in one.changes:
        how = "written" if written else "safe" if change.safe else "review"
        print(clean(f"# {change.check} {one.name}:{change.line}: {change.title} ({how})"))
    patch = format_patch(one.name.replace("\\", "/").lstrip("/"), one.before, one.after)
    plain = patch.replace("\r\n", "\n")
    print(patch if clean(plain) == plain else "# the diff holds what looks like a secret: it is not shown\n", end="")
    for line in one.rest:
        print(clean(f"# no diff: {line}"))


def _summary(shown: int, written: int, rest: int, files: int) -> str:
    counted = f"{files} file{'' if files == 1 else 's'}"
    if not shown and not rest:
        return f"nothing to fix in {counted}"
    parts = [f"{shown} fixed by these diffs" if not written else f"{written} fixed and written"]
    if rest:
        parts.append(f"{rest} without a diff: `dtdebug explain ID` shows an example of the fix")
    return f"{'; '.join(parts)} ({counted})"
