"""Runs the checks on open texts and returns the problems of each."""

from __future__ import annotations

import logging
from collections import defaultdict

from dtdebug_lsp.documents import Document, NotebookDocument
from dtdebug_lsp.problem import Change, Problem
from dtdebug_taxonomy.checks import Check, load
from dtdebug_taxonomy.checks.run.examine import CheckedHit, examine
from dtdebug_taxonomy.checks.run.proving import prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span

log = logging.getLogger(__name__)


def prepare() -> None:
    """Import all checks, so that the first text with other words is checked as fast as later ones."""
    for check in load().values():
        try:
            check.function  # noqa: B018 importing is all that is wanted
        except Exception as error:
            _log_failure(check, error)


def problems(document: Document, settings: Settings) -> list[Problem]:
    """Return the problems in a text; for the same version always the same list."""
    if document.notebook is not None:
        return notebook_problems(document.notebook, settings).get(document.uri, [])
    source = document.source
    if source is None:
        return []
    if document.seen is None or document.seen[0] != settings:
        found = [
            _problem(f, f.span, tuple(Change(document, *e) for e in f.fix.edits) if f.fix else ())
            for f in examine(source, settings, failed=_log_failure)
        ]
        parsed = not isinstance(source, Code) or source.whole
        document.seen = settings, document.memory.settle(document.text, found, parsed=parsed)
    return document.seen[1]


def notebook_problems(notebook: NotebookDocument, settings: Settings) -> dict[str, list[Problem]]:
    """Return the problems in each cell, by its URI."""
    if notebook.seen is None or notebook.seen[0] != settings:
        notebook.seen = settings, _by_cell(notebook, settings)
    return notebook.seen[1]


def _by_cell(notebook: NotebookDocument, settings: Settings) -> dict[str, list[Problem]]:
    read = notebook.read
    found: dict[str, list[Problem]] = defaultdict(list)
    for source in read.sources:
        for f in examine(source, settings, failed=_log_failure):
            at, span = read.place(source, f.span)
            message = read.message_in_cell(source, f.span, f.message)
            edits = []
            for edit in f.fix.edits if f.fix else ():
                other, where = read.place(source, edit.span)
                if (document := notebook.text(other)) is not None:
                    edits.append(Change(document, where, edit.text))
            found[notebook.cells[at].uri].append(_problem(f._replace(message=message), span, tuple(edits)))
    result = {}
    for number, cell in enumerate(notebook.cells):
        if (document := notebook.text(number)) is not None:
            result[document.uri] = document.memory.settle(
                document.text, sorted(found[cell.uri], key=lambda p: p.span), parsed=read.code.whole
            )
    return result


def _problem(found: CheckedHit, span: Span, edits: tuple[Change, ...]) -> Problem:
    title = found.fix.title if found.fix and edits else ""
    return Problem(found.check, span, found.message, found.severity, title, found.safe, edits, found)


def _log_failure(check: Check, error: Exception) -> None:
    log.warning("%s itself failed: %s: %s", check.id, type(error).__name__, error)


def holds(document: Document, found: list[Problem], problem: Problem, settings: Settings) -> bool:
    """True if a problem's fix is proven, or can't be verified: in a notebook, or while the text does not parse."""
    source = document.source
    if document.notebook is not None or source is None or problem.hit is None:
        return True
    if isinstance(source, Code) and not source.whole:
        return True
    return bool(prove_fixes(source, [p.hit for p in found if p.hit is not None], [problem.hit], settings).hits)


def touching(found: list[Problem], span: Span) -> list[Problem]:
    """Return the problems that touch a span."""
    return [p for p in found if p.span.start <= span.end and span.start <= p.span.end]
