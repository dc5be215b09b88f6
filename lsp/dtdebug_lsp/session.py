"""The server's state for one client: open texts, settings, published diagnostics."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
from collections.abc import Iterable
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from dtdebug_lsp import checking, handoff
from dtdebug_lsp.configuration import Configuration
from dtdebug_lsp.diagnostics import diagnostic
from dtdebug_lsp.documents import Document, Documents, canonical_uri, path_of
from dtdebug_lsp.handoff import Handoff, Shown
from dtdebug_taxonomy import __version__, storage
from dtdebug_taxonomy.checks.run.settings import Settings

log = logging.getLogger(__name__)

_SLOW_S = 0.08
"""Seconds of processor time from which on a text is checked only when typing pauses."""
_PAUSE_S = 0.12
"""Seconds without an edit that are a pause; the first edit after one is checked at once."""
_PATIENCE_S = 1.0
"""Seconds that the first check waits for the client's settings."""
_REST_S = 3.0
"""Seconds without a check after which garbage is collected; the collector never runs while someone types."""
_HEADER = 4096
"""Maximum bytes of a header that are held at a time."""
_MOST_CHECKS = 500
"""Number of checks without such a pause after which it is collected all the same."""


class Protocol(LanguageServerProtocol):
    """Protocol of pygls without its mirror of texts: ours counts lines as editors do."""

    lsp_text_document__did_open = None  # type: ignore[assignment]
    lsp_text_document__did_change = None  # type: ignore[assignment]
    lsp_text_document__did_close = None  # type: ignore[assignment]
    lsp_notebook_document__did_open = None  # type: ignore[assignment]
    lsp_notebook_document__did_change = None  # type: ignore[assignment]
    lsp_notebook_document__did_close = None  # type: ignore[assignment]

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return the message; one that can't be understood is answered, so that the client does not wait forever."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if isinstance(data.get("method"), str) and isinstance(data.get("id"), int | str):
                self._send_response(data["id"], None, error.to_response_error())
            raise


class _Messages:
    """Standard input without unused headers: pygls asks a thread for each line, whatever it holds."""

    def __init__(self, stdin: BinaryIO) -> None:
        self._stdin = stdin
        self.read = stdin.read

    def readline(self) -> bytes:
        """Return the next line that tells a length or ends the headers; none at the end."""
        while line := self._stdin.readline(_HEADER):
            if line.startswith(b"Content-Length") or not line.strip():
                break
        return line


class Server(LanguageServer):
    """One client's session."""

    def __init__(self, stdout: BinaryIO | None = None) -> None:
        self._stdout = stdout
        python = types.NotebookCellLanguage("python")
        super().__init__(
            "dtdebug",
            __version__,
            notebook_document_sync=types.NotebookDocumentSyncOptions(
                [types.NotebookDocumentFilterWithNotebook("*", [python])], save=False
            ),
            protocol_cls=Protocol,
        )
        self.documents = Documents()
        self.configuration = Configuration()
        self.handoff = Handoff(storage.folder())
        self.failed: Shown = {}
        self.scanned: dict[str, list[types.Diagnostic]] = {}
        """Diagnostics of closed files from the last check of the workspace."""
        self.configured = asyncio.Event()
        self.client_explains = False
        """True for our own extension, which shows the answers of `dtdebug.explain`."""
        self._published: set[str] = set()
        self._due: dict[str, asyncio.Task[None]] = {}
        self._kept: set[asyncio.Task[None]] = set()
        self._cost: dict[str, float] = {}
        self._edited: dict[str, tuple[float, float]] = {}
        """Times of the last edit of a text and of the one before."""
        self._checks = 0
        self._collection: asyncio.TimerHandle | None = None

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serve on standard input and output."""
        super().start_io(cast("BinaryIO", _Messages(stdin or sys.stdin.buffer)), stdout or self._stdout)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log a line only, as the user has not asked for anything."""
        log.warning("%s: %s", getattr(source, "__name__", source), error)

    # -- client capabilities ---------------------------------------------------------------------

    def can(self, path: str) -> Any:
        """Return a capability of the client by its dotted name; None if it is absent."""
        value: Any = getattr(self.protocol, "client_capabilities", None)  # none before the client has said who it is
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    @property
    def pulls(self) -> bool:
        """True if the client pulls diagnostics, which it does not do for cells of notebooks."""
        return self.can("text_document.diagnostic") is not None

    @property
    def can_explain(self) -> bool:
        """True if an explanation can be shown to the user."""
        return self.client_explains or bool(self.can("window.show_document.support"))

    # -- settings --------------------------------------------------------------------------------

    def settings(self, document: Document) -> Settings:
        """Return the settings for a text."""
        return self.configuration.of(_path(document))

    def is_enabled(self, document: Document) -> bool:
        """True if the user wants diagnostics in a text."""
        return self.configuration.is_enabled(_path(document))

    async def ready(self) -> None:
        """Wait briefly until the settings are known."""
        if not self.configured.is_set():
            try:
                await asyncio.wait_for(self.configured.wait(), _PATIENCE_S)
            except TimeoutError:
                self.configured.set()

    # -- diagnostics -----------------------------------------------------------------------------

    def keep(self, task: asyncio.Task[None]) -> None:
        """Hold a background task until it ends, since the event loop does not."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def schedule(self, document: Document, *, around: bool = False) -> None:
        """Check a text soon, delayed by later edits; `around` if not it but a file that it depends on was edited."""
        key = _key(document)
        if (due := self._due.pop(key, None)) is not None:
            due.cancel()
        if not around:
            self._edited[key] = time.monotonic(), self._edited.get(key, (0.0, 0.0))[0]
        self._due[key] = task = asyncio.create_task(self._check(document, key, around))
        self.keep(task)

    def recheck_dependents(self, path: str) -> None:
        """Check again the texts that depend on a changed file, such as a launch script on its program."""
        for document in self.documents.reread(path) if path else ():
            self.schedule(document, around=True)

    async def pause(self, document: Document) -> None:
        """Wait for a pause in typing if a text takes long to check; an edit cancels the wait."""
        key = _key(document)
        last, before = self._edited.get(key, (0.0, 0.0))
        if self._cost.get(key, 0) > _SLOW_S and last - before < _PAUSE_S:
            await asyncio.sleep(_PAUSE_S)

    async def _check(self, document: Document, key: str, around: bool) -> None:
        await (asyncio.sleep(_PAUSE_S) if around else self.pause(document))
        await self.ready()
        if around:
            self._let_pull()
        if document.notebook is not None:
            for cell in document.notebook.cells:
                self.publish(cell.uri)
        else:
            self.publish(document.uri)
        self._due.pop(key, None)

    def document_diagnostics(self, document: Document) -> list[types.Diagnostic]:
        """Return the diagnostics of an open text."""
        if not self.is_enabled(document):
            return []
        is_known = (document.notebook or document).seen is not None
        began = time.thread_time()
        seen = checking.problems(document, self.settings(document))
        if not is_known:
            self._cost[_key(document)] = time.thread_time() - began
            self._collect_later()
        return [diagnostic(p, document, self.documents.positions) for p in seen]

    def _collect_later(self) -> None:
        """Collect garbage when no text has been checked for a while."""
        self._checks += 1
        if self._collection is not None:
            self._collection.cancel()
        if self._checks >= _MOST_CHECKS:
            self._collect()
        else:
            self._collection = asyncio.get_running_loop().call_later(_REST_S, self._collect)

    def _collect(self) -> None:
        self._checks, self._collection = 0, None
        gc.collect()

    def publish(self, uri: str) -> None:
        """Push a text's failed runs, and its diagnostics unless the client pulls those."""
        key = canonical_uri(uri)
        shown = [d for _, d in self.failed.get(key, [])]
        document = self.documents.get(uri)
        pushes = document is not None and (document.notebook is not None or not self.pulls)
        if document is not None and pushes:
            try:
                shown += self.document_diagnostics(document)
            except Exception:
                log.exception("%s could not be checked", uri)
        elif document is None:
            shown += self.scanned.get(key, [])
        if not shown and not pushes and key not in self._published:
            return
        (self._published.add if shown else self._published.discard)(key)
        version = document.version if document is not None else None
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, shown, version))

    def recheck(self) -> None:
        """Check all open texts again after a change of settings."""
        for document in self.documents:
            document.seen = None
            if document.notebook is not None:
                document.notebook.seen = None
        seen: set[str] = set()
        for document in self.documents:
            key = _key(document)
            if key not in seen:
                seen.add(key)
                self.schedule(document)
        self._let_pull()

    def _let_pull(self) -> None:
        """Tell a client that pulls diagnostics that they have changed."""
        if self.pulls and self.can("workspace.diagnostics.refresh_support"):
            self.workspace_diagnostic_refresh(None)

    def show_failures(self, *, force: bool = False) -> None:
        """Publish the failed runs again if they, or the texts that they point at, changed."""
        if not self.handoff.refresh() and not force:
            return
        related = bool(self.can("text_document.publish_diagnostics.related_information"))
        found = handoff.diagnostics(self.handoff.failures, self.documents, related=related)
        now = {canonical_uri(uri): rows for uri, rows in found.items() if self._shows(uri)}
        before, self.failed = self.failed, now
        uris = {canonical_uri(uri): uri for uri in found}
        for key in [k for k in {**before, **now} if before.get(k) != now.get(k)]:
            self.publish(uris.get(key, key))
        if before != now and self.can("workspace.code_lens.refresh_support"):
            self.workspace_code_lens_refresh(None)

    def _shows(self, uri: str) -> bool:
        """True if the file is open or in the workspace, so that its failures concern the user here."""
        if self.documents.get(uri) is not None:
            return True
        path = path_of(uri)
        return any(path.startswith(folder.rstrip("/") + "/") for folder in self.folders())

    def folders(self) -> list[str]:
        """Return the paths of the workspace's folders."""
        given = [f.uri for f in self.workspace.folders.values()] or [self.workspace.root_uri or ""]
        return [path for uri in given if (path := path_of(uri))]

    def forget(self, uris: Iterable[str]) -> None:
        """Withdraw the diagnostics of closed texts, except those that do not depend on their being open."""
        for uri in uris:
            self.publish(uri)


def _key(document: Document) -> str:
    """Return the key of what is checked as one: a text, or all cells of a notebook."""
    return canonical_uri((document.notebook or document).uri)


def _path(document: Document) -> str:
    return document.notebook.path if document.notebook else document.path
