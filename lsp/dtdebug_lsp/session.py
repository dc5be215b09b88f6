"""The server's own state for one client: what is open, what was chosen, what was published."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol

from dtdebug_lsp import checking, handoff
from dtdebug_lsp.configuration import Configuration
from dtdebug_lsp.diagnostics import diagnostic
from dtdebug_lsp.documents import Document, Documents, one_uri, path_of
from dtdebug_lsp.handoff import Handoff, Shown
from dtdebug_taxonomy import __version__, state
from dtdebug_taxonomy.checks.settings import Settings

log = logging.getLogger(__name__)

_SLOW_S = 0.08
"""A text whose last check took more time of the processor is checked only when typing pauses."""
_PAUSE_S = 0.12
_PATIENCE_S = 1.0
"""So long the first check waits for the client to tell its settings."""


class Protocol(LanguageServerProtocol):
    """The protocol of pygls without its mirror of texts: ours counts lines as editors do."""

    lsp_text_document__did_open = None  # type: ignore[assignment]
    lsp_text_document__did_change = None  # type: ignore[assignment]
    lsp_text_document__did_close = None  # type: ignore[assignment]
    lsp_notebook_document__did_open = None  # type: ignore[assignment]
    lsp_notebook_document__did_change = None  # type: ignore[assignment]
    lsp_notebook_document__did_close = None  # type: ignore[assignment]


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
        self.handoff = Handoff(state.folder())
        self.failed: Shown = {}
        self.scanned: dict[str, list[types.Diagnostic]] = {}
        """Of closed files: what the last check of the workspace found in them."""
        self.configured = asyncio.Event()
        self.client_explains = False
        """It is our own extension, which shows what `dtdebug.explain` answers."""
        self._published: set[str] = set()
        self._due: dict[str, asyncio.Task[None]] = {}
        self._kept: set[asyncio.Task[None]] = set()
        self._cost: dict[str, float] = {}

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serves on standard input and output."""
        super().start_io(stdin, stdout or self._stdout)

    def report_server_error(self, error: Exception, source: Any) -> None:
        """A line in the log: the user has not asked for anything."""
        log.warning("%s: %s", getattr(source, "__name__", source), error)

    # -- what the client can ---------------------------------------------------------------------

    def can(self, path: str) -> Any:
        """A capability of the client by its dotted name; None where it has not."""
        value: Any = self.client_capabilities
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    @property
    def pulls(self) -> bool:
        """Whether the client asks for diagnostics itself. It does not do so for cells of notebooks."""
        return self.can("text_document.diagnostic") is not None

    @property
    def can_explain(self) -> bool:
        """Whether an explanation can come before the user's eyes."""
        return self.client_explains or bool(self.can("window.show_document.support"))

    # -- settings --------------------------------------------------------------------------------

    def settings(self, document: Document) -> Settings:
        """The settings for a text."""
        return self.configuration.of(_path(document))

    def enabled(self, document: Document) -> bool:
        """Whether the user wants to see anything in a text."""
        return self.configuration.enabled(_path(document))

    async def ready(self) -> None:
        """Waits until the settings are known, but not for long."""
        if not self.configured.is_set():
            try:
                await asyncio.wait_for(self.configured.wait(), _PATIENCE_S)
            except TimeoutError:
                self.configured.set()

    # -- diagnostics -----------------------------------------------------------------------------

    def keep(self, task: asyncio.Task[None]) -> None:
        """Holds a task of the background until it ends: the loop itself does not."""
        self._kept.add(task)
        task.add_done_callback(self._kept.discard)

    def schedule(self, document: Document, *, around: bool = False) -> None:
        """Checks a text soon; a later edit puts that off. `around`: not it was edited, but a file it was read with."""
        key = _key(document)
        if (due := self._due.pop(key, None)) is not None:
            due.cancel()
        self._due[key] = task = asyncio.create_task(self._check(document, key, around))
        self.keep(task)

    def changed(self, path: str) -> None:
        """A file has another text: what was read with it, as a launch script with its program, is checked again."""
        for document in self.documents.reread(path) if path else ():
            self.schedule(document, around=True)

    async def pause(self, document: Document) -> None:
        """Waits for a pause in typing, in a text that takes long to check; whoever waits is cancelled by an edit."""
        if self._cost.get(_key(document), 0) > _SLOW_S:
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

    def found(self, document: Document) -> list[types.Diagnostic]:
        """What the checks see in an open text."""
        if not self.enabled(document):
            return []
        is_known = (document.notebook or document).seen is not None
        began = time.thread_time()
        seen = checking.problems(document, self.settings(document))
        if not is_known:
            self._cost[_key(document)] = time.thread_time() - began
        return [diagnostic(p, document, self.documents.positions) for p in seen]

    def publish(self, uri: str) -> None:
        """Pushes what is known of a text: failed runs, and what the checks see unless the client asks for that."""
        key = one_uri(uri)
        shown = [d for _, d in self.failed.get(key, [])]
        document = self.documents.get(uri)
        pushes = document is not None and (document.notebook is not None or not self.pulls)
        if document is not None and pushes:
            try:
                shown += self.found(document)
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
        """Settings changed: what is open is checked again."""
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
        """Tells a client that asks for diagnostics that they are other ones now."""
        if self.pulls and self.can("workspace.diagnostics.refresh_support"):
            self.workspace_diagnostic_refresh(None)

    def show_failures(self, *, force: bool = False) -> None:
        """Publishes the failed runs again if they, or the texts that they point at, changed."""
        if not self.handoff.refresh() and not force:
            return
        related = bool(self.can("text_document.publish_diagnostics.related_information"))
        found = handoff.diagnostics(self.handoff.failures, self.documents, related=related)
        now = {one_uri(uri): rows for uri, rows in found.items() if self._shows(uri)}
        before, self.failed = self.failed, now
        uris = {one_uri(uri): uri for uri in found}
        for key in [k for k in {**before, **now} if before.get(k) != now.get(k)]:
            self.publish(uris.get(key, key))
        if before != now and self.can("workspace.code_lens.refresh_support"):
            self.workspace_code_lens_refresh(None)

    def _shows(self, uri: str) -> bool:
        """A failure in a closed file is the user's concern here if the file is in the workspace."""
        if self.documents.get(uri) is not None:
            return True
        path = path_of(uri)
        return any(path.startswith(folder.rstrip("/") + "/") for folder in self.folders())

    def folders(self) -> list[str]:
        """Paths of the workspace's folders."""
        given = [f.uri for f in self.workspace.folders.values()] or [self.workspace.root_uri or ""]
        return [path for uri in given if (path := path_of(uri))]

    def forget(self, uris: Iterable[str]) -> None:
        """Texts were closed: what was shown of them goes, but not what is so without their being open."""
        for uri in uris:
            self.publish(uri)


def _key(document: Document) -> str:
    """What is checked as one: a text, or all cells of a notebook."""
    return one_uri((document.notebook or document).uri)


def _path(document: Document) -> str:
    return document.notebook.path if document.notebook else document.path
