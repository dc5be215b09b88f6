"""Sub-command `dtdebug check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.privacy.sanitize import complain

_MOST_UNREAD = 40
"""Maximum number of unparsed parts of files that are listed."""


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    check = commands.add_parser(
        "check",
        help="find distributed mistakes in code and configuration before the run",
        description="Reads programs, notebooks, launch scripts and configuration; never runs or imports them.",
        epilog="Example: `dtdebug check train.py job.sbatch`. Exit status: 0 nothing found, 1 something found, 2 "
        "usage or unreadable input. "
        "A comment `# dtdebug: ignore[DT101] reason` switches a finding off; [tool.dtdebug] in pyproject.toml holds "
        "select, ignore, severity and per-file-ignores.",
    )
    check.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: this folder)")
    check.add_argument("--format", choices=("text", "json", "sarif", "github"), default="text")
    check.add_argument("--select", default="", metavar="IDS", help="only these: DT101,DT5,collective-under-rank-guard")
    check.add_argument("--ignore", default="", metavar="IDS", help="not these")
    check.add_argument("--fix", action="store_true", help="write the safe fixes into the files")
    check.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per processor)")
    check.add_argument("--no-cache", action="store_true", help="also check unchanged files again")
    check.add_argument("--list", action="store_true", help="list the checks and exit")
    check.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from dtdebug.check import formats
    from dtdebug.check.examine_all import examine_all
    from dtdebug.check.examine_file import CheckFinding, Selection
    from dtdebug.check.files import UnreadableError, files_to_check

    choice = Selection(
        parse_checks(options.select, "check --select"), parse_checks(options.ignore, "check --ignore"), options.fix
    )
    if options.jobs < 0:
        raise UsageError(f"check --jobs {options.jobs}: 0 or more")
    if options.list:
        return _list()
    named = options.paths or [Path()]
    try:
        paths = list(files_to_check(named))
    except UnreadableError as error:
        raise UsageError(f"check: {error}") from None
    findings: list[CheckFinding] = []
    problems: dict[str, None] = {}
    unread: list[str] = []
    fixed = seen = 0
    with _progress(len(paths)) as progress:
        for examined in examine_all(paths, choice, options.jobs, progress, keep=not options.no_cache):
            findings += examined.findings
            problems |= dict.fromkeys(examined.problems)
            fixed += examined.fixed
            unread += examined.unread
            seen += examined.lines > 0  # otherwise it could not be read
    if options.format == "text":
        print(formats.text(findings, colour=sys.stdout.isatty()), end="")
        sys.stdout.flush()  # in a file or pipe that receives both streams, the findings come first
        print(formats.summary(findings, seen, fixed, len(unread)), file=sys.stderr)
    else:
        print(formats.FORMATS[options.format](findings), end="")
    for problem in (*problems, *unread[:_MOST_UNREAD]):
        complain(problem)
    if len(unread) > _MOST_UNREAD:
        more = len(unread) - _MOST_UNREAD
        print(f"dtdebug: and {more} more parts not understood; name a file to see its own", file=sys.stderr)
    if any(
        problem.startswith(f"{path}: ") or (not path.is_dir() and str(path) in problem)
        for path in named
        for problem in problems
    ):
        return USAGE
    return FOUND if findings else NOTHING


def parse_checks(listed: str, option: str) -> tuple[str, ...]:
    """Parse the ids and names of checks that an option lists."""
    from dtdebug_taxonomy.checks import load

    ids = tuple(i.strip() for i in listed.split(",") if i.strip())
    for i in ids:
        if not any(c.id.startswith(i) or c.name == i for c in load().values()):
            raise UsageError(f"{option} {i}: no such check; `dtdebug check --list` lists them")
    return ids


def _list() -> int:
    from dtdebug_taxonomy.checks import load

    for c in load().values():
        fix = "safe fix" if c.safe else ""
        print(
            f"{c.id}  {c.severity:<11}  {','.join(c.symptom):<12}  {c.name:<44}  {c.title}{f' ({fix})' if fix else ''}"
        )
    return 0


@contextmanager
def _progress(files: int) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on a terminal if there are many files."""
    if files < 500 or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("checking"), BarColumn(), MofNCompleteColumn(), TextColumn("files"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=files)
        yield lambda done: bar.update(task, completed=done)
