"""Language server: maps each message to its handler. The features are in neighbouring modules."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable
from typing import Any, BinaryIO

from lsprotocol import types

from dtdebug_lsp import actions, checking, commands, completion, configuration, handoff, hints, hovers, links
from dtdebug_lsp.documents import Document, canonical_uri, path_of
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.session import Server

log = logging.getLogger(__name__)

_LOOK_S = 2.0
"""Seconds between two polls for failed runs."""
_LATER_S = 0.4
"""Seconds after the start before data for hovers is loaded, so that first diagnostics come first."""


def create(stdout: BinaryIO | None = None) -> Server:
    """Return the server, not yet started; `stdout` is where it writes, if not to standard output."""
    server = Server(stdout)
    for method, handler in _HANDLERS.items():
        server.feature(method, _OPTIONS.get(method))(_log_errors(handler))
    for name, command in commands.COMMANDS.items():
        server.command(name)(command)
    return server


def _log_errors(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an internal error into a log line and an empty answer rather than a message to the user."""

    @functools.wraps(handler)
    def answer(ls: Server, *arguments: Any) -> Any:
        try:
            return handler(ls, *arguments)
        except Exception:
            log.exception("%s failed", handler.__name__)
            return None

    @functools.wraps(handler)
    async def answer_later(ls: Server, *arguments: Any) -> Any:
        try:
            return await handler(ls, *arguments)
        except Exception:
            log.exception("%s failed", handler.__name__)
            return None

    return answer_later if asyncio.iscoroutinefunction(handler) else answer


# -- life ------------------------------------------------------------------------------------------


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Store the client's position encoding, and its settings if it sends them now."""
    ls.documents.positions = Positions(ls.workspace.position_encoding or types.PositionEncodingKind.Utf16)
    ls.configuration.editor = configuration.section(params.initialization_options)
    ls.client_explains = "serverCommand" in ls.configuration.editor


async def did_initialize(ls: Server, params: types.InitializedParams) -> None:
    """Request settings and notifications of changes, and start polling for failed runs."""
    ls.keep(asyncio.create_task(_watch(ls)))
    asyncio.get_running_loop().call_later(_LATER_S, _warm, ls)
    watched = [types.FileSystemWatcher(pattern) for pattern in ("**/pyproject.toml", "**/*.{py,yaml,yml,json}")]
    options: list[tuple[str, str, Any]] = []
    if ls.can("workspace.did_change_watched_files.dynamic_registration"):
        told = types.DidChangeWatchedFilesRegistrationOptions(watched)
        options.append(("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, told))
    if ls.can("workspace.did_change_configuration.dynamic_registration"):
        section = types.DidChangeConfigurationRegistrationOptions(configuration.SECTION)
        options.append(("settings", types.WORKSPACE_DID_CHANGE_CONFIGURATION, section))
    if options:
        ls.client_register_capability(types.RegistrationParams([types.Registration(*row) for row in options]))
    await _ask_settings(ls)


def _warm(ls: Server) -> None:
    checking.prepare()  # not in a thread: the event loop may read the same data as the imported checks
    ls.thread_pool.submit(commands.warm)


async def _ask_settings(ls: Server) -> None:
    """Request the settings from the client, for each folder."""
    try:
        if ls.can("workspace.configuration"):
            folders = [f.uri for f in ls.workspace.folders.values()]
            items = [types.ConfigurationItem(None, configuration.SECTION)]
            items += [types.ConfigurationItem(uri, configuration.SECTION) for uri in folders]
            answer = await ls.workspace_configuration_async(types.ConfigurationParams(items))
            first, *others = [a if isinstance(a, dict) else {} for a in answer] or [{}]
            ls.configuration.editor = ls.configuration.editor | first
            ls.configuration.folders = {path_of(uri): a for uri, a in zip(folders, others, strict=False)}
    finally:
        ls.configured.set()


async def _watch(ls: Server) -> None:
    while True:
        try:
            ls.show_failures()
        except Exception:
            log.exception("failed runs could not be shown")
        await asyncio.sleep(_LOOK_S)


async def did_change_configuration(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Apply changed settings, which some clients send and others want to be asked for."""
    if ls.can("workspace.configuration"):
        await _ask_settings(ls)
    else:
        ls.configuration.editor = configuration.section(params.settings)
    ls.recheck()


def did_change_watched_files(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
    """Check texts again after a change of a `pyproject.toml`, program, module or configuration."""
    paths = [path_of(change.uri) for change in params.changes]
    for path in paths:
        ls.recheck_dependents(path)
    if any(path.endswith("pyproject.toml") for path in paths):
        ls.recheck()


async def did_change_workspace_folders(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Request the settings of new folders."""
    await _ask_settings(ls)
    ls.recheck()


# -- texts -----------------------------------------------------------------------------------------


def did_open(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
    """Check a text that was opened."""
    document = ls.documents.open(params.text_document)
    ls.scanned.pop(canonical_uri(document.uri), None)
    ls.schedule(document)
    ls.recheck_dependents(document.path)
    ls.show_failures(force=bool(ls.handoff.failures))


def did_change(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
    """Check a text that was edited."""
    document = ls.documents.change(params)
    if document is not None:
        ls.schedule(document)
        ls.recheck_dependents(document.path)
        if ls.handoff.concerns(document.path):
            ls.show_failures(force=True)


def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """Check texts that depend on a saved file, for clients that can't watch files."""
    if params.text_document.uri.endswith("/pyproject.toml"):
        ls.recheck()
    for document in ls.documents:
        if document.modules is not None and document.modules.refresh():
            document.forget()
            ls.schedule(document)


def did_close(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
    """Forget a text that was closed; from now on its file on disk counts."""
    ls.documents.close(params.text_document.uri)
    ls.recheck_dependents(path_of(params.text_document.uri))
    ls.forget([params.text_document.uri])


def notebook_did_open(ls: Server, params: types.DidOpenNotebookDocumentParams) -> None:
    """Check a notebook that was opened."""
    notebook = ls.documents.open_notebook(params)
    _schedule_cells(ls, [c.uri for c in notebook.cells])


def notebook_did_change(ls: Server, params: types.DidChangeNotebookDocumentParams) -> None:
    """Check a notebook whose cells were edited, added or removed."""
    notebook, gone = ls.documents.change_notebook(params)
    ls.forget(gone)
    if notebook is not None:
        _schedule_cells(ls, [c.uri for c in notebook.cells])


def notebook_did_close(ls: Server, params: types.DidCloseNotebookDocumentParams) -> None:
    """Forget a notebook that was closed."""
    gone = ls.documents.close_notebook(params.notebook_document.uri)
    for cell in params.cell_text_documents:
        ls.documents.close(cell.uri)
    ls.forget(dict.fromkeys([*gone, *(c.uri for c in params.cell_text_documents)]))


def _schedule_cells(ls: Server, uris: list[str]) -> None:
    document = next((d for uri in uris if (d := ls.documents.get(uri))), None)
    if document is not None:
        ls.schedule(document)
    ls.show_failures(force=bool(ls.handoff.failures))


# -- questions -------------------------------------------------------------------------------------


def _document(ls: Server, params: Any) -> Document | None:
    """Return the text of a request, if it is open and dtdebug is enabled there."""
    document = ls.documents.get(params.text_document.uri)
    return document if document is not None and ls.is_enabled(document) else None


async def pull(ls: Server, params: types.DocumentDiagnosticParams) -> types.RelatedFullDocumentDiagnosticReport:
    """Return diagnostics to clients that pull them; those of cells are pushed."""
    await ls.ready()
    document = _document(ls, params)
    items: list[types.Diagnostic] = []
    if document is not None and document.notebook is None:
        await ls.pause(document)
        try:
            items = ls.document_diagnostics(document)
        except Exception:
            log.exception("%s could not be checked", document.uri)
    return types.RelatedFullDocumentDiagnosticReport(items=items)


def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    """Return the hover for a position."""
    document = _document(ls, params)
    if document is None:
        return None
    return hovers.hover(document, ls.settings(document), ls.documents.positions, params.position)


def code_action(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction] | None:
    """Return the code actions in a range."""
    document = _document(ls, params)
    if document is None:
        return None
    found = actions.actions(
        document,
        ls.settings(document),
        ls.documents.positions,
        params,
        ls.client_capabilities,
        can_explain=ls.can_explain,
    )
    return [*found, *handoff.actions(ls.failed, params)]


def code_action_resolve(ls: Server, action: types.CodeAction) -> types.CodeAction:
    """Add the edit to an action."""
    data = action.data if isinstance(action.data, dict) else {}
    document = ls.documents.get(str(data.get("uri")))
    if document is None:
        return action
    return actions.resolve(action, document, ls.settings(document), ls.documents.positions, ls.client_capabilities)


def complete(ls: Server, params: types.CompletionParams) -> list[types.CompletionItem] | None:
    """Return the names that are valid at a position."""
    document = _document(ls, params)
    return completion.completions(document, ls.documents.positions, params.position) if document else None


def document_link(ls: Server, params: types.DocumentLinkParams) -> list[types.DocumentLink] | None:
    """Return the links in comments."""
    document = _document(ls, params)
    return links.links(document, ls.documents.positions) if document else None


def code_lens(ls: Server, params: types.CodeLensParams) -> list[types.CodeLens] | None:
    """Return lenses only at failed runs: elsewhere they would be in the way."""
    return handoff.lenses(ls.failed, params.text_document.uri)


def inlay_hint(ls: Server, params: types.InlayHintParams) -> list[types.InlayHint] | None:
    """Return sizes that follow from other numbers."""
    document = _document(ls, params)
    return hints.hints(document, ls.documents.positions, params.range) if document else None


_HANDLERS: dict[str, Callable[..., Any]] = {
    types.INITIALIZE: initialize,
    types.INITIALIZED: did_initialize,
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: did_change_configuration,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: did_change_watched_files,
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: did_change_workspace_folders,
    types.TEXT_DOCUMENT_DID_OPEN: did_open,
    types.TEXT_DOCUMENT_DID_CHANGE: did_change,
    types.TEXT_DOCUMENT_DID_SAVE: did_save,
    types.TEXT_DOCUMENT_DID_CLOSE: did_close,
    types.NOTEBOOK_DOCUMENT_DID_OPEN: notebook_did_open,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_did_change,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: notebook_did_close,
    types.TEXT_DOCUMENT_DIAGNOSTIC: pull,
    types.TEXT_DOCUMENT_HOVER: hover,
    types.TEXT_DOCUMENT_CODE_ACTION: code_action,
    types.CODE_ACTION_RESOLVE: code_action_resolve,
    types.TEXT_DOCUMENT_COMPLETION: complete,
    types.TEXT_DOCUMENT_DOCUMENT_LINK: document_link,
    types.TEXT_DOCUMENT_CODE_LENS: code_lens,
    types.TEXT_DOCUMENT_INLAY_HINT: inlay_hint,
}
_OPTIONS: dict[str, Any] = {
    types.TEXT_DOCUMENT_DID_SAVE: types.SaveOptions(include_text=False),
    types.TEXT_DOCUMENT_DIAGNOSTIC: types.DiagnosticOptions(
        inter_file_dependencies=True, workspace_diagnostics=False, identifier="dtdebug"
    ),
    types.TEXT_DOCUMENT_CODE_ACTION: types.CodeActionOptions(code_action_kinds=actions.KINDS, resolve_provider=True),
    types.TEXT_DOCUMENT_COMPLETION: types.CompletionOptions(trigger_characters=completion.TRIGGERS),
}
