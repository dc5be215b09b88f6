"""Findings in one file, as plain data that can pass between processes."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from dtdebug.check.files import UnreadableError, read_source, settings_of
from dtdebug.check.time_limit import TakesTooLongError, time_limit
from dtdebug_taxonomy.checks import Check, Severity
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source import kinds
from dtdebug_taxonomy.source.notebook import Notebook, NotebookError, notebook_cells
from dtdebug_taxonomy.source.python.project import Project
from dtdebug_taxonomy.source.python.syntax import Syntax
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span, Text

_PASSES = 5
"""Maximum passes of safe fixes over a text; one fix can enable another."""


class PlacedEdit(msgspec.Struct, frozen=True):
    """Span by line and column, both from 1, columns in code points, and its replacement."""

    start: tuple[int, int]
    end: tuple[int, int]
    text: str


class PlacedFix(msgspec.Struct, frozen=True):
    """Edits of one fix."""

    title: str
    safe: bool
    edits: tuple[PlacedEdit, ...]


class CheckFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """Finding of a check: one element of the output of `--format json`."""

    id: str
    name: str
    path: str
    line: int
    """Counts from 1; in a notebook, within its cell."""
    column: int
    """Counts from 1, in code points."""
    end_line: int
    end_column: int
    message: str
    severity: Severity
    symptom: tuple[str, ...]
    fix_pattern: str
    """Name of the class of fixes in the study."""
    fix: PlacedFix | None
    cell: int = 0
    """Cell of a notebook, from 1; 0 in other files."""


class ExaminedFile(NamedTuple):
    """Result of the examination of one file."""

    findings: tuple[CheckFinding, ...] = ()
    problems: tuple[str, ...] = ()
    """Parts of it or of its settings that could not be read, one line each."""
    lines: int = 0
    fixed: int = 0
    """Number of findings removed by safe fixes."""
    unread: tuple[str, ...] = ()
    """Parts of it that no check has seen, with the reason, one line each."""
    consulted: tuple[str, ...] = ()
    """Other modules of its project that were read for it."""


class Selection(NamedTuple):
    """Choice of checks on the command line; it takes precedence over the project's settings."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fix: bool = False
    """True to write safe fixes into the files."""
    parse: bool = False
    """True to parse programs that concern no check, too: the user has named each, and is told what is not Python."""


def project() -> Project:
    """Return the modules around the checked files, read from disk on demand."""
    return Project(_text)


def _text(path: str) -> str | None:
    try:
        return read_source(Path(path)).text
    except UnreadableError:
        return None


def examine_file(path: Path, choice: Selection, around: Project | None = None) -> ExaminedFile:
    """Return the findings in a file; an unreadable part becomes a problem, not an error."""
    around = around or project()
    with suppress(MemoryError):
        return _examine_file(path, choice, around)
    around.forget()  # modules of other files may be what fills the memory
    gc.collect()
    try:
        return _examine_file(path, choice, around)
    except MemoryError:
        around.forget()
        return ExaminedFile((), (), unread=(f"{path}: takes too much memory to check, skipped",))


def _examine_file(path: Path, choice: Selection, around: Project) -> ExaminedFile:
    around.consulted.clear()
    settings, problems = _settings(path, choice)
    try:
        text, encoding = read_source(path)
        if path.suffix == ".ipynb":
            with time_limit(len(text)):
                notebook = Notebook(notebook_cells(text), path=str(path))
                notebook.code.project = around
                found = tuple(_in_notebook(notebook, str(path), settings))
                unread = tuple(_unread_cells(notebook, path))
            return ExaminedFile(found, problems, text.count("\n") + 1, 0, unread, tuple(sorted(around.read_so_far())))
        fixed = 0
        if choice.fix:
            before = text
            with time_limit(len(text)):
                text, fixed = _apply_fixes(path, before, settings, around)
            if text != before:
                path.write_text(text, encoding=encoding, newline="")
        with time_limit(len(text)):
            hits, source = _examine_text(text, str(path), settings, around, unused=True)
            is_python = not (choice.parse and isinstance(source, Syntax)) or _is_python(source)
        if source is None and not kinds.is_known(path.name):
            return ExaminedFile((), problems, unread=(f"{path}: not a kind of file that is checked, skipped",))
        if source is None:  # JSON that is no configuration, of which a folder may hold many
            return ExaminedFile((), problems)
        if not is_python:
            return ExaminedFile((), (*problems, f"{path}: is not a Python program: no line of it is Python"))
        found = tuple(_finding(f, str(path), source.text, f.span) for f in hits)
        lines, unread = text.count("\n") + 1, tuple(_unread(source, path))
        source.__dict__.clear()  # its reference cycles would wait for the garbage collector
        return ExaminedFile(found, problems, lines, fixed, unread, tuple(sorted(around.read_so_far())))
    except UnreadableError as error:
        return ExaminedFile((), (*problems, str(error)))
    except NotebookError as error:
        return ExaminedFile((), (*problems, f"{path}: {error}"))
    except OSError as error:
        return ExaminedFile((), (*problems, f"{path}: can't be written: {error.strerror}"))
    except TakesTooLongError:
        around.forget()  # it may hold what was known of a module half way
        return ExaminedFile((), problems, unread=(f"{path}: takes too long to check, skipped",))
    except MemoryError:
        raise
    except Exception as error:  # a defect of a check must not hide findings elsewhere
        return ExaminedFile((), (*problems, f"{path}: internal error in a check ({type(error).__name__}: {error})"))


def _is_python(source: Syntax) -> bool:
    """False if no line that can be read does anything: words and names stand in any text."""
    does = any(not isinstance(row, ast.Pass) and not _is_word(row) for row in source.tree.body)
    return does or not source.unread


def _is_word(row: ast.stmt) -> bool:
    return isinstance(row, ast.Expr) and isinstance(row.value, ast.Name | ast.Constant)


def _settings(path: Path, choice: Selection) -> tuple[Settings, tuple[str, ...]]:
    settings, problems = settings_of(path.absolute().parent)
    if choice.select:
        settings = settings._replace(select=choice.select, ignore=())
    return settings._replace(ignore=(*settings.ignore, *choice.ignore)), problems


def of_text(text: str, path: str, settings: Settings) -> list[CheckFinding]:
    """Return the findings in a text that is not a notebook."""
    found, source = _examine_text(text, path, settings, project())
    return [_finding(f, path, source.text, f.span) for f in found] if source else []


def _examine_text(
    text: str, path: str, settings: Settings, around: Project, *, unused: bool = False
) -> tuple[list[CheckedHit], Source | None]:
    source = kinds.parse_file(path, text)
    if source is not None:
        source.project = around
    return (examine(source, settings, unused=unused) if source is not None else []), source


def _unread(source: Source | None, path: Path) -> Iterator[str]:
    """Yield the parts of a file that no check has seen: `train.sh: lines 40-92 not understood: a quote has no end`."""
    if source is None:
        return
    for part in source.unread:
        yield f"{path}: {_lines(source.text, part.span)} not understood: {part.why}"


def _unread_cells(notebook: Notebook, path: Path) -> Iterator[str]:
    for source in notebook.sources:
        for part in source.unread:
            cell, span = notebook.place(source, part.span)
            lines = _lines(Text(notebook.cells[cell][1]), span)
            yield f"{path}: cell {cell + 1}: {lines} not understood: {part.why}"


def _lines(text: Text, span: Span) -> str:
    first, last = text.place(span.start).line, text.place(max(span.start, span.end - 1)).line
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _apply_fixes(path: Path, text: str, settings: Settings, around: Project) -> tuple[str, int]:
    """Return the text with all proven safe fixes applied, and their number."""
    count = 0
    for _ in range(_PASSES):
        found, source = _examine_text(text, str(path), settings, around)
        if source is None:
            break
        done = prove_fixes(source, found, [f for f in found if f.safe], settings)
        if not done.hits:
            break
        text, count = done.text, count + len(done.hits)
    return text, count


def of_notebook(cells: list[tuple[str, str]], path: str, settings: Settings) -> list[CheckFinding]:
    """Return the findings in a notebook's cells, in order."""
    return _in_notebook(Notebook(cells, path=path), path, settings)


def _in_notebook(notebook: Notebook, path: str, settings: Settings) -> list[CheckFinding]:
    texts = {n: Text(text) for n, (_, text) in enumerate(notebook.cells)}
    result = []
    for source in notebook.sources:
        for found in examine(source, settings, unused=True):
            at = notebook.place(source, found.span)
            message = notebook.message_in_cell(source, found.span, found.message)
            found = found._replace(message=message)  # noqa: PLW2901 - relative to its cell
            edits = [notebook.place(source, e.span) for e in found.fix.edits] if found.fix else []
            if found.fix is not None and {e.cell for e in edits} <= {at.cell}:
                moved = tuple(e._replace(span=p.span) for e, p in zip(found.fix.edits, edits, strict=True))
                found = found._replace(fix=found.fix._replace(edits=moved))  # noqa: PLW2901 - relative to its cell
            else:
                found = found._replace(fix=None)  # noqa: PLW2901 - a fix that spans cells can't be applied there
            result.append(_finding(found, path, texts[at.cell], at.span, at.cell + 1))
    return sorted(result, key=lambda f: (f.cell, f.line, f.column, f.id))


def _finding(found: CheckedHit, path: str, text: Text, span: Span, cell: int = 0) -> CheckFinding:
    start, end = text.place(span.start), text.place(span.end)
    return CheckFinding(
        id=found.check.id,
        name=found.check.name,
        path=path.encode(errors="replace").decode(),  # a name that is no UTF-8 can't be in JSON
        line=start.line,
        column=start.column,
        end_line=end.line,
        end_column=end.column,
        message=found.message.encode(errors="replace").decode(),
        severity=found.severity,
        symptom=found.check.symptom,
        fix_pattern=_pattern(found.check),
        fix=_fix(found, text),
        cell=cell,
    )


def _pattern(check: Check) -> str:
    from dtdebug_taxonomy.knowledge.loader import load

    return load().patterns[check.pattern].name if check.cause else ""


def _fix(found: CheckedHit, text: Text) -> PlacedFix | None:
    if found.fix is None:
        return None
    edits = tuple(PlacedEdit(text.place(e.span.start), text.place(e.span.end), e.text) for e in found.fix.edits)
    return PlacedFix(found.fix.title, found.safe, edits)
