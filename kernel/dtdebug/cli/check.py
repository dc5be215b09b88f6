"""Sub-command `dtdebug check`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.privacy.sanitize import clean, complain
from dtdebug.storage import budget

if TYPE_CHECKING:
    from dtdebug.check.formats import Report

_SHOWN = ("error", "warning", "hint")
"""Severities that options name; `information` lies between a warning and a hint."""

_PER_FILE, _PER_FINDING = 0.005, 0.001
"""Processor seconds that a file and a finding take to be listed."""
_MOST_UNREAD = 40
"""Maximum number of unparsed parts of files that are listed."""


def add(commands: Any) -> None:
    """Add the sub-command to the command-line parser."""
    check = commands.add_parser(
        "check",
        help="find distributed mistakes in code and configuration before the run",
        description="Reads programs, notebooks, launch scripts and configuration; never runs or imports them.",
        epilog="Example: `dtdebug check train.py job.sbatch`. Exit status: 0 nothing found, or hints only; 1 "
        "warnings; 2 usage or unreadable input, also if there is no file to check. "
        "A comment `# dtdebug: ignore[DT101] reason` switches a finding off; [tool.dtdebug] in pyproject.toml holds "
        "select, ignore, severity, per-file-ignores and exclude.",
    )
    check.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files and folders (default: this folder)")
    check.add_argument(
        "--format", choices=("text", "concise", "json", "sarif", "github", "gitlab", "junit"), default="text"
    )
    check.add_argument(
        "--select",
        default="",
        metavar="IDS",
        help="only these: DT101,DT5,collective-under-rank-guard; ALL takes those in that are off by default",
    )
    check.add_argument("--ignore", default="", metavar="IDS", help="not these")
    check.add_argument("--min-severity", choices=_SHOWN, default="hint", help="show nothing below it (default: hint)")
    check.add_argument(
        "--fail-on", choices=(*_SHOWN, "never"), default="warning", help="exit with 1 from this on (default: warning)"
    )
    check.add_argument("--exit-zero", action="store_const", const="never", dest="fail_on", help="as --fail-on never")
    check.add_argument("--baseline", type=Path, metavar="FILE", help="findings in this file are known: not shown")
    check.add_argument("--write-baseline", action="store_true", help="write all findings to the file of --baseline")
    check.add_argument("--statistics", action="store_true", help="show the number of findings of each check only")
    check.add_argument("--fix", action="store_true", help="write the safe fixes into the files")
    check.add_argument("--force-exclude", action="store_true", help="exclude holds for files that are named, too")
    check.add_argument("--jobs", type=int, default=0, metavar="N", help="processes (default: one per processor)")
    check.add_argument("--no-cache", action="store_true", help="also check unchanged files again")
    check.add_argument("--list", action="store_true", help="list the checks and exit")
    check.set_defaults(run=_check)


def _check(options: argparse.Namespace) -> int:
    from dtdebug.check import formats
    from dtdebug.check.baseline import Baseline
    from dtdebug.check.examine_all import examine_all
    from dtdebug.check.examine_file import CheckFinding, Selection
    from dtdebug.check.texts import Texts

    choice = Selection(
        parse_checks(options.select, "check --select"),
        parse_checks(options.ignore, "check --ignore"),
        options.fix,
        parse=not any(path.is_dir() for path in options.paths or [Path()]),
    )
    _reject_contradictions(options)
    if options.list:
        return _list()
    named = options.paths or [Path()]
    paths = find_files(named, "check", exclude_named=options.force_exclude)
    findings: list[CheckFinding] = []
    problems: dict[str, None] = {}
    unread: list[str] = []
    fixed = seen = 0
    with _progress(len(paths)) as progress:
        for examined in examine_all(paths, choice, options.jobs, progress, keep=not options.no_cache):
            findings += examined.findings
            budget.current().grant(_PER_FILE + _PER_FINDING * len(examined.findings))
            problems |= dict.fromkeys(examined.problems)
            fixed += examined.fixed
            unread += examined.unread
            seen += examined.lines > 0  # otherwise it could not be read
    texts = Texts()
    if options.write_baseline:
        Baseline(options.baseline).write(findings, texts)
        print(f"{len(findings)} findings written to {clean(str(options.baseline))}", file=sys.stderr)
        options.fail_on = "never"
    shown = Baseline(options.baseline).new(findings, texts) if options.baseline else findings
    accepted = len(findings) - len(shown)
    rank = formats.SEVERITIES.index
    shown = [f for f in shown if rank(f.severity) <= rank(options.min_severity)]
    limit = -1 if options.fail_on == "never" else rank(options.fail_on)
    report = formats.Report(shown, texts, lambda f: rank(f.severity) <= limit)
    _print(report, options)
    if seen and options.format in {"text", "concise"} and not options.write_baseline:
        sys.stdout.flush()  # in a file or pipe that receives both streams, the findings come first
        print(formats.summary(report, seen, fixed=fixed, unread=len(unread), accepted=accepted), file=sys.stderr)
    for problem in (*problems, *unread[:_MOST_UNREAD]):
        complain(problem)
    if len(unread) > _MOST_UNREAD:
        more = len(unread) - _MOST_UNREAD
        print(f"dtdebug: and {more} more parts not understood; name a file to see its own", file=sys.stderr)
    if not (seen or problems or unread or options.force_exclude):
        complain(f"{named[0]}: holds no program or configuration that is checked")
    if (not seen and not options.force_exclude) or any(
        problem.startswith(f"{path}: ") or (not path.is_dir() and str(path) in problem)
        for path in named
        for problem in problems
    ):
        return USAGE
    return FOUND if any(map(report.fails, shown)) or (unread and options.fail_on == "hint") else NOTHING


def _reject_contradictions(options: argparse.Namespace) -> None:
    if options.jobs < 0:
        raise UsageError(f"check --jobs {options.jobs}: 0 or more")
    if options.write_baseline and options.baseline is None:
        raise UsageError("check --write-baseline: name the file with --baseline FILE")
    if options.statistics and options.format not in {"text", "concise"}:
        raise UsageError(f"check --statistics: for people only, not with --format {options.format}")


def _print(report: Report, options: argparse.Namespace) -> None:
    from dtdebug.check import code_frames, formats

    if options.write_baseline:
        return
    if options.statistics:
        print(formats.statistics(report), end="")
    elif options.format != "text":
        print(formats.FORMATS[options.format](report), end="")
    elif sys.stdout.isatty() or "FORCE_COLOR" in os.environ:
        from rich.console import Console

        code_frames.show(report.findings, report.texts, Console())
    else:
        print(code_frames.plain(report.findings, report.texts), end="")


def find_files(named: Sequence[Path], command: str, *, exclude_named: bool = False) -> list[Path]:
    """Return the files to check below the named paths.

    Raises:
        UsageError: a path does not exist, or there is no file to check.

    """
    from dtdebug.check.files import UnreadableError, files_to_check

    try:
        paths = list(files_to_check(named, exclude_named=exclude_named))
    except UnreadableError as error:
        raise UsageError(f"{command}: {error}") from None
    if not paths and not exclude_named:
        raise UsageError(f"{command}: no file to check in {', '.join(map(str, named))}")
    return paths


def parse_checks(listed: str, option: str) -> tuple[str, ...]:
    """Parse the ids and names of checks that an option lists."""
    from dtdebug_taxonomy.checks import known_checks
    from dtdebug_taxonomy.checks.run.settings import ALL

    known = list(known_checks())
    ids = tuple(i.strip() for i in listed.split(",") if i.strip())
    for i in ids:
        if i != ALL and not any(c.id.startswith(i) or c.name == i for c in known):
            raise UsageError(f"{option} {i}: no such check; `dtdebug check --list` lists them")
    return ids


def _list() -> int:
    from dtdebug_taxonomy.checks import known_checks

    for c in known_checks():
        fix = "off by default" if c.optional else "safe fix" if c.safe else ""
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
