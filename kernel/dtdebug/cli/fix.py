"""Sub-command `dtdebug fix`: shows proven fixes of findings as patches of the user's files, or writes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from dtdebug.check.examine_file import project
from dtdebug.check.files import NotCheckedError, UnreadableError, read_source, settings_of
from dtdebug.errors import FOUND, NOTHING, USAGE, UsageError
from dtdebug.privacy.sanitize import clean, complain
from dtdebug_taxonomy.checks import Severity
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import format_patch, in_cell, prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source import kinds
from dtdebug_taxonomy.source.notebook import Notebook, NotebookError, notebook_cells
from dtdebug_taxonomy.source.python.project import Project
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_GRAVEST = get_args(Severity)
"""Severities, the gravest first: of two conflicting fixes, the one of the graver finding is applied."""
_WITHIN = 120.0
_PASSES = 5
"""Maximum passes over a text; one fix can enable another."""


class ShownFix(NamedTuple):
    """Fix as shown, with the line of its finding in the text before the fix."""

    line: int
    check: str
    title: str
    safe: bool


class FixResult(NamedTuple):
    """Result for one file, or for one cell."""

    name: str
    """`train.py`, or `demo.ipynb cell 4`."""
    before: str
    after: str
    changes: tuple[ShownFix, ...]
    rest: tuple[str, ...]
    """Findings without a proven fix: place and problem, one line each."""


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
            done = fix_file(path, select, safe_only=options.write and not options.all)
            if options.write and path.suffix != ".ipynb":
                _write(path, done)
        except (UnreadableError, NotebookError, OSError) as error:
            if isinstance(error, NotCheckedError) and path not in options.paths:
                continue
            text = str(error)
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


def fix_file(path: Path, select: Sequence[str] = (), *, safe_only: bool = False) -> list[FixResult]:
    """Return a file with its proven fixes; of a notebook, each cell with a finding.

    Raises:
        UnreadableError: the file can't be read, or is of no kind that is checked.
        NotebookError: it is not a notebook.

    """
    settings, _ = settings_of(path.absolute().parent)
    if select:
        settings = settings._replace(select=tuple(select), ignore=())
    text = read_source(path).text
    if path.suffix == ".ipynb":
        return _cells(path, notebook_cells(text), settings, safe_only=safe_only)
    source = _read(str(path), text, project())
    if source is None:
        raise NotCheckedError(f"{path}: not a kind of file that is checked, skipped")
    done = _passes(source, settings, safe_only=safe_only)
    return [done._replace(name=str(path))] if done.changes or done.rest else []


def _passes(source: Source, settings: Settings, *, safe_only: bool) -> FixResult:
    before, changes = str(source.text), list[ShownFix]()
    for _ in range(_PASSES):
        found = examine(source, settings)
        wanted = sorted((f for f in found if f.safe or not safe_only), key=lambda f: _GRAVEST.index(f.severity))
        done = prove_fixes(source, found, wanted, settings, follow=not safe_only)
        if not done.hits:
            break
        changes += [_change(source, hit) for hit in done.hits]
        again = _read(source.path, done.text, source.project)
        if again is None:
            break
        source = again
    rest = tuple(f"{source.path}:{_lines(source, f.span)}: {f.check.id} {f.message}" for f in examine(source, settings))
    return FixResult(source.path, before, str(source.text), tuple(changes), rest)


def _read(path: str, text: str, around: Project | None) -> Source | None:
    source = kinds.parse_file(path, text)
    if source is not None:
        source.project = around
    return source


def _change(source: Source, hit: CheckedHit) -> ShownFix:
    title = hit.fix.title if hit.fix is not None else ""
    return ShownFix(source.text.place(hit.span.start).line, hit.check.id, title, hit.safe)


def _lines(source: Source, span: Span) -> str:
    first, last = source.text.place(span.start).line, source.text.place(span.end).line
    return str(first) if first == last else f"{first}-{last}"


def _cells(path: Path, cells: list[tuple[str, str]], settings: Settings, *, safe_only: bool) -> list[FixResult]:
    """Fix cell by cell: a fix that spans cells can't be shown as a diff of one, so its finding is left as it is."""
    notebook = Notebook(cells, path=str(path))
    notebook.code.project = project()
    rows: dict[int, FixResult] = {}
    for source in notebook.sources:
        found = examine(source, settings)
        for hit in found:
            at = notebook.place(source, hit.span)
            name = f"{path} cell {at.cell + 1}"
            row = rows.get(at.cell, FixResult(name, cells[at.cell][1], cells[at.cell][1], (), ()))
            after = in_cell(notebook, source, found, hit, settings) if hit.safe or not safe_only else None
            if after is not None and not row.changes:  # the positions of a second fix would refer to the old text
                row = row._replace(after=after, changes=(_change(source, hit),))
            else:
                row = row._replace(rest=(*row.rest, f"{name}: {hit.check.id} {hit.message}"))
            rows[at.cell] = row
    return [rows[number] for number in sorted(rows)]


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
