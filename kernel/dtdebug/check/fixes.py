"""The proven fixes of one file or notebook: finding by finding, the gravest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from dtdebug.check.examine_file import project
from dtdebug.check.files import NotCheckedError, read_source, settings_of
from dtdebug_taxonomy.checks import Severity
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import in_cells, prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source import kinds
from dtdebug_taxonomy.source.notebook import Notebook, notebook_cells
from dtdebug_taxonomy.source.python.project import Project
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_GRAVEST = get_args(Severity)
"""Severities, the gravest first: of two conflicting fixes, the one of the graver finding is applied."""
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
        changes += [_change(hit, source.text.place(hit.span.start).line) for hit in done.hits]
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


def _change(hit: CheckedHit, line: int) -> ShownFix:
    return ShownFix(line, hit.check.id, hit.fix.title if hit.fix is not None else "", hit.safe)


def _lines(source: Source, span: Span) -> str:
    first, last = source.text.place(span.start).line, source.text.place(span.end).line
    return str(first) if first == last else f"{first}-{last}"


def _cells(path: Path, cells: list[tuple[str, str]], settings: Settings, *, safe_only: bool) -> list[FixResult]:
    """Fix each cell at most once: the positions of a second fix would refer to the old text."""
    notebook = Notebook(cells, path=str(path))
    notebook.code.project = project()
    rows: dict[int, FixResult] = {}
    for source in notebook.sources:
        found = examine(source, settings)
        for hit in found:
            cell, span = notebook.place(source, hit.span)
            after = in_cells(notebook, source, found, hit, settings) if hit.safe or not safe_only else {}
            fixed = bool(after) and all(
                number not in rows or rows[number].after == cells[number][1] for number in after
            )
            for number in {cell, *after} if fixed else {cell}:
                text = cells[number][1]
                rows.setdefault(number, FixResult(f"{path} cell {number + 1}", text, text, (), ()))
                if fixed:
                    rows[number] = rows[number]._replace(after=after.get(number, text))
            if fixed:
                change = _change(hit, cells[cell][1].count("\n", 0, span.start) + 1)
                rows[cell] = rows[cell]._replace(changes=(*rows[cell].changes, change))
            else:
                told = notebook.message_in_cell(source, hit.span, hit.message)
                rest = (*rows[cell].rest, f"{path} cell {cell + 1}: {hit.check.id} {told}")
                rows[cell] = rows[cell]._replace(rest=rest)
    return [rows[number] for number in sorted(rows)]
