"""Code actions for a problem: fix it, fix all, suppress it, read more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, get_args

from lsprotocol import types

from dtdebug_lsp.checking import holds, problems, touching
from dtdebug_lsp.diagnostics import diagnostic
from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.problem import Change, OpenText, Problem
from dtdebug_taxonomy.checks import Severity
from dtdebug_taxonomy.checks.run.examine import examine
from dtdebug_taxonomy.checks.run.proving import prove_fixes
from dtdebug_taxonomy.checks.run.settings import Settings
from dtdebug_taxonomy.knowledge.loader import load as knowledge
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.text import Span, Text

_COMMENT = re.compile(r"(?:#|//)\s*dtdebug:\s*ignore(?:\[(?P<ids>[^\]\n]*)\])?")


def suppression(document: Document, problem: Problem) -> Change | None:
    """Return the edit that adds or extends the comment; None if none is possible."""
    text = document.text
    line = _line(document, problem)
    if line is None:
        return None
    start, end = text.starts[line - 1], text.end_of_line(line)
    known = _COMMENT.search(text[start:end])
    if known is not None:
        if known["ids"] is None:
            return None
        ids = known["ids"].strip().rstrip(",")
        return Change(
            document,
            Span(start + known.start("ids"), start + known.end("ids")),
            f"{ids}, {problem.check.id}" if ids else problem.check.id,
        )
    mark = _mark(document)
    if not mark:
        return None
    written = text[start:end]
    end -= len(written) - len(written.rstrip())
    return Change(document, Span(end, text.end_of_line(line)), f"  {mark} dtdebug: ignore[{problem.check.id}]")


def _line(document: Document, problem: Problem) -> int | None:
    """Return the line on which the comment is effective and breaks nothing."""
    text = document.text
    lines = [text.place(problem.span.start).line, text.place(problem.span.end).line]
    source = document.source
    if document.notebook is None and isinstance(source, Code):
        lines += [s.end_lineno or 0 for s in source.statements_at(lines[0]) if not hasattr(s, "body")][:1]
        inside = _inside_strings(source)
        return next((n for n in lines if n and n not in inside and not _continues(text, n)), None)
    if document.path.lower().rpartition("/")[2].startswith("dockerfile") or document.language == "dockerfile":
        lines = [n for n in lines if text.line(n).lstrip().upper().startswith("RUN ")]
    return next((n for n in lines if not _continues(text, n)), None)


def _inside_strings(code: Code) -> set[int]:
    """Return the lines that end inside a multi-line string."""
    strings = [c for c in code.nodes(ast.Constant) if isinstance(c.value, str | bytes)]
    return {
        line for node in [*strings, *code.nodes(ast.JoinedStr)] for line in range(node.lineno, node.end_lineno or 0)
    }


def _continues(text: Text, line: int) -> bool:
    return text.line(line).rstrip().endswith("\\")


def _mark(document: Document) -> str:
    """Return the comment mark; "" for JSON without comments."""
    name = document.path.lower()
    if name.endswith((".json", ".jsonc")) or document.language in {"json", "jsonc"}:
        return "//" if re.search(r"^\s*//", document.text, re.MULTILINE) else ""
    return "#"


FIX_ALL = "source.fixAll.dtdebug"
KINDS = [types.CodeActionKind.QuickFix, FIX_ALL]
EXPLAIN = "dtdebug.explain"
_GRAVEST = get_args(Severity)
"""Severities, most severe first: an editor offers the first action before the others."""
_ROUNDS = 10
"""Maximum number of passes; one fix can enable another."""


def actions(
    document: Document,
    settings: Settings,
    positions: Positions,
    params: types.CodeActionParams,
    client: types.ClientCapabilities,
    *,
    can_explain: bool = False,
) -> list[types.CodeAction]:
    """Return the actions for the problems in a range."""
    wanted = params.context.only
    found = problems(document, settings)
    here = sorted(
        touching(found, positions.span(document.text, params.range)), key=lambda p: _GRAVEST.index(p.severity)
    )
    result: list[types.CodeAction] = []
    if _wants(wanted, types.CodeActionKind.QuickFix):
        edit = partial(workspace_edit, positions=positions, client=client)
        shown = {problem: [diagnostic(problem, document, positions)] for problem in here}
        result += [
            types.CodeAction(
                p.title, types.CodeActionKind.QuickFix, shown[p], is_preferred=p.safe or None, edit=edit(p.edits)
            )
            for p in here
            if p.edits and holds(document, found, p, settings)
        ]
        for problem in here:
            if (change := suppression(document, problem)) is not None:
                title = f"dtdebug: ignore {problem.check.id} on this line"
                action = types.CodeAction(title, types.CodeActionKind.QuickFix, shown[problem], edit=edit([change]))
                result.append(action)
        if can_explain:
            result += _explanations(here)
    safe = any(p.safe and p.edits for p in found)
    if safe and _wants(wanted, FIX_ALL):
        title = "dtdebug: apply all safe fixes"
        action = types.CodeAction(title, FIX_ALL, data={"uri": document.uri, "version": document.version})
        result.append(action if _resolves(client) else resolve(action, document, settings, positions, client))
    return result


def resolve(
    action: types.CodeAction,
    document: Document,
    settings: Settings,
    positions: Positions,
    client: types.ClientCapabilities,
) -> types.CodeAction:
    """Add the edit to an action that was offered without one, unless the text has changed since."""
    if action.kind == FIX_ALL and isinstance(action.data, dict) and action.data.get("version") == document.version:
        changes = _in_cell(document, settings) if document.notebook else [fix_all(document, settings)]
        action.edit = workspace_edit(changes, positions=positions, client=client)
    return action


def fix_all(document: Document, settings: Settings) -> Change:
    """Return one edit for all safe fixes, applied repeatedly until none is left."""
    text: str = document.text
    for _ in range(_ROUNDS):
        source = document.read(text)
        found = examine(source, settings, failed=lambda *_: None) if source is not None else []
        done = prove_fixes(source, found, [f for f in found if f.safe], settings) if source is not None else None
        if done is None or not done.hits:
            break
        text = done.text
    return _difference(document, text)


def _in_cell(document: Document, settings: Settings) -> list[Change]:
    """Return the safe fixes in one notebook cell that do not overlap; the others come with the next pass."""
    taken: list[Change] = []
    for problem in problems(document, settings):
        new = [c for c in problem.edits if c not in taken]
        apart = all(c.span.end < t.span.start or t.span.end < c.span.start for c in new for t in taken)
        if problem.safe and apart and all(c.document is document for c in new):
            taken += new
    return taken


def _difference(document: Document, fixed: str) -> Change:
    """Return the smallest single edit that produces the new text, so that the cursor and folds elsewhere stay."""
    text = str(document.text)
    start = next((i for i, (a, b) in enumerate(zip(text, fixed, strict=False)) if a != b), min(len(text), len(fixed)))
    most = min(len(text), len(fixed)) - start
    same = next((i for i in range(most) if text[-1 - i] != fixed[-1 - i]), most)
    return Change(document, Span(start, len(text) - same), fixed[start : len(fixed) - same])


def _explanations(here: list[Problem]) -> Iterator[types.CodeAction]:
    for code in dict.fromkeys(s for p in here for s in p.check.symptom):
        title = f"Explain {code}: {knowledge().symptoms[code].title}"
        command = types.Command(title, EXPLAIN, arguments=[code, True])
        yield types.CodeAction(title, types.CodeActionKind.QuickFix, command=command)


def _wants(only: Iterable[str] | None, kind: str) -> bool:
    """True if a kind, or one that contains it, is requested."""
    kind = str(getattr(kind, "value", kind))
    rows = [str(getattr(o, "value", o)) for o in only or ()]
    return not rows or any(kind == row or kind.startswith(row + ".") or not row for row in rows)


def _resolves(client: types.ClientCapabilities) -> bool:
    support = client.text_document and client.text_document.code_action
    lazily = support.resolve_support if support and support.data_support else None
    return lazily is not None and "edit" in lazily.properties


def workspace_edit(
    changes: Iterable[Change], *, positions: Positions, client: types.ClientCapabilities
) -> types.WorkspaceEdit:
    """Return edits in the form that the client supports, with versions if possible."""
    by_uri: dict[str, tuple[OpenText, list[types.TextEdit]]] = {}
    for change in changes:
        edits = by_uri.setdefault(change.document.uri, (change.document, []))[1]
        edits.append(types.TextEdit(positions.range(change.document.text, change.span), change.text))
    support: Any = client.workspace and client.workspace.workspace_edit
    if support and support.document_changes:
        return types.WorkspaceEdit(
            document_changes=[
                types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(uri, d.version), list(edits))
                for uri, (d, edits) in by_uri.items()
            ]
        )
    return types.WorkspaceEdit(changes={uri: edits for uri, (_, edits) in by_uri.items()})
