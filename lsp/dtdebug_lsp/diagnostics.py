"""Converts problems to diagnostics of the protocol."""

from __future__ import annotations

from typing import Any

from lsprotocol import types

from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.problem import Change, Problem
from dtdebug_taxonomy.checks import page_address

SOURCE = "dtdebug"
_SEVERITY = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


def diagnostic(problem: Problem, document: Document, positions: Positions) -> types.Diagnostic:
    """Convert one problem of a text."""
    return types.Diagnostic(
        range=positions.range(document.text, problem.span),
        message=problem.message,
        severity=_SEVERITY[problem.severity],
        code=problem.check.id,
        code_description=types.CodeDescription(page_address(problem.check)),
        source=SOURCE,
        data=_data(problem, positions),
    )


def _data(problem: Problem, positions: Positions) -> dict[str, Any]:
    """Return the data with which a client can act on a problem without another request."""
    data: dict[str, Any] = {"name": problem.check.name, "symptoms": list(problem.check.symptom)}
    if problem.edits:
        edits = [_edit(e, positions) for e in problem.edits]
        data["fix"] = {"title": problem.title, "safe": problem.safe, "edits": edits}
    return data


def _edit(change: Change, positions: Positions) -> dict[str, Any]:
    where = positions.range(change.document.text, change.span)
    return {
        "uri": change.document.uri,
        "range": {side: {"line": p.line, "character": p.character} for side, p in _sides(where)},
        "newText": change.text,
    }


def _sides(where: types.Range) -> tuple[tuple[str, types.Position], ...]:
    return ("start", where.start), ("end", where.end)
