"""Plugin for python-lsp-server, as JupyterLab allows only one server for each document."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Generator
from functools import lru_cache
from typing import Any

from lsprotocol import types
from pygls.protocol import default_converter
from pylsp import hookimpl

from dtdebug_lsp import actions, checking, hovers
from dtdebug_lsp.configuration import Configuration, section
from dtdebug_lsp.diagnostics import diagnostic
from dtdebug_lsp.documents import Document
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.problem import Problem
from dtdebug_taxonomy.checks.run.settings import Settings

log = logging.getLogger(__name__)

NAME = "dtdebug"
_KEPT = 8
"""Maximum number of texts whose analysis is cached."""
_POSITIONS = Positions(types.PositionEncodingKind.Utf16)
_CLIENT = types.ClientCapabilities()
"""Capabilities assumed for clients: python-lsp-server passes edits on, and all clients support the plain form."""
_documents: OrderedDict[str, Document] = OrderedDict()


@hookimpl
def pylsp_settings() -> dict[str, Any]:
    """Return the default settings; `pylsp.plugins.dtdebug` takes the same keys as `[tool.dtdebug]`."""
    return {"plugins": {NAME: {"enabled": True, "select": [], "ignore": [], "severity": {}, "per-file-ignores": {}}}}


@hookimpl
def pylsp_lint(config: Any, document: Any) -> list[dict[str, Any]]:
    """Return the diagnostics of a text."""
    try:
        known = _document(document)
        found = checking.problems(known, _settings(config, known))
        return [_coded_diagnostic(p, known) for p in found]
    except Exception:
        log.exception("%s could not be checked", document.uri)
        return []


def _coded_diagnostic(problem: Problem, document: Document) -> dict[str, Any]:
    """Return a diagnostic that begins with the code, like other plugins: JupyterLab shows only the message."""
    shown = diagnostic(problem, document, _POSITIONS)
    shown.message = f"{shown.code} {shown.message}"
    return _plain(shown)


@hookimpl
def pylsp_code_actions(config: Any, document: Any, range: dict[str, Any], context: Any) -> list[dict[str, Any]]:  # noqa: A002
    """Return the code actions in a range."""
    try:
        known = _document(document)
        only = context.get("only") if isinstance(context, dict) else None
        where = _range(range)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(known.uri), where, types.CodeActionContext([], only)
        )
        found = actions.actions(known, _settings(config, known), _POSITIONS, params, _CLIENT)
        return [_plain(a) for a in found if a.command is None]
    except Exception:
        log.exception("nothing can be offered in %s", document.uri)
        return []


@hookimpl(hookwrapper=True)
def pylsp_hover(config: Any, document: Any, position: dict[str, int]) -> Generator[None, Any, None]:
    """Put our hover above that of other plugins, as only one of them may answer."""
    outcome = yield
    try:
        known = _document(document)
        place = types.Position(position["line"], position["character"])
        ours = hovers.hover(known, _settings(config, known), _POSITIONS, place)
    except Exception:
        log.exception("nothing can be said in %s", document.uri)
        return
    if ours is not None and isinstance(ours.contents, types.MarkupContent):
        # Ignore the exception of another plugin; the server shows it if we have no hover.
        theirs = "" if outcome.exception else _text((outcome.get_result() or {}).get("contents"))
        text = "\n\n---\n\n".join(t for t in (ours.contents.value, theirs) if t)
        outcome.force_result({"contents": {"kind": "markdown", "value": text}})


def _document(document: Any) -> Document:
    """Return our analysis of a text, cached until the text changes."""
    known = _documents.pop(document.uri, None)
    if known is None or known.text != document.source:
        known = Document(types.TextDocumentItem(document.uri, "python", document.version or 0, document.source))
    _documents[document.uri] = known
    while len(_documents) > _KEPT:
        _documents.popitem(last=False)[1].forget()
    return known


def _settings(config: Any, document: Document) -> Settings:
    configuration = _configuration()
    configuration.editor = {k: v for k, v in section(config.plugin_settings(NAME)).items() if k != "enabled"}
    return configuration.of(document.path)


@lru_cache(maxsize=1)
def _configuration() -> Configuration:
    return Configuration()


@lru_cache(maxsize=1)
def _converter() -> Any:
    return default_converter()  # type: ignore[no-untyped-call]


def _plain(value: Any) -> dict[str, Any]:
    plain: dict[str, Any] = _converter().unstructure(value)
    return plain


def _range(given: dict[str, Any]) -> types.Range:
    """Convert a range to the protocol's type."""
    return types.Range(*(types.Position(given[side]["line"], given[side]["character"]) for side in ("start", "end")))


def _text(contents: Any) -> str:
    """Return the text of a hover in any form that the protocol allows."""
    if isinstance(contents, list):
        return "\n\n".join(t for t in map(_text, contents) if t)
    if isinstance(contents, dict):
        value = str(contents.get("value", ""))
        return f"```{contents['language']}\n{value}\n```" if contents.get("language") else value
    return str(contents or "")
