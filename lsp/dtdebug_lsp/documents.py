"""Texts that the client has open, mirrored as the client has them.

The mirror is our own: lines end where editors end them, not where `str.splitlines` does, and a message about an
unopened text changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from lsprotocol import types
from pygls.uris import to_fs_path

from dtdebug_lsp.modules import Modules
from dtdebug_lsp.positions import Positions
from dtdebug_lsp.problem import Problem
from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.notebook import Notebook
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span, Text


class LastGood:
    """The last good findings of one text, and the spans edited since."""

    def __init__(self) -> None:
        self._good: list[Problem] | None = None
        self._edits: list[Span] = []

    def record_edit(self, span: Span, length: int) -> None:
        """Move the findings after a span was replaced by a text of some length; drop those that lost an end."""
        if self._good is None:
            return
        kept = ((p, _shift_span(p.span, span, length)) for p in self._good)
        self._good = [p._replace(span=s, edits=()) for p, s in kept if s is not None]
        moved = (_shift_span(e, span, length) or _merge_spans(e, span, length) for e in self._edits)
        self._edits = [*moved, Span(span.start, span.start + length)]

    def settle(self, text: Text, problems: list[Problem], *, parsed: bool) -> list[Problem]:
        """Return the problems to show, given what the checks find now."""
        if parsed:
            self._good, self._edits = problems, []
            return problems
        if self._good is None:
            return problems
        lines = {line for e in self._edits for line in range(text.place(e.start).line, text.place(e.end).line + 1)}
        known = {(p.check.id, p.span.start) for p in self._good}
        new = [
            p for p in problems if text.place(p.span.start).line in lines and (p.check.id, p.span.start) not in known
        ]
        return sorted([*self._good, *new], key=lambda p: p.span)


def _shift_span(span: Span, edit: Span, length: int) -> Span | None:
    """Return a span after an edit; None if the edit removed one of its ends."""
    shift = length - (edit.end - edit.start)
    if edit.end <= span.start and edit != span:
        return Span(span.start + shift, span.end + shift)
    if edit.start >= span.end:
        return span
    if span.start < edit.start and edit.end < span.end:
        return Span(span.start, span.end + shift)
    return None


def _merge_spans(span: Span, edit: Span, length: int) -> Span:
    """Merge two edits if the later one removed a part of the earlier one."""
    return Span(min(span.start, edit.start), max(span.end, edit.end) + length - (edit.end - edit.start))


if TYPE_CHECKING:
    from dtdebug_taxonomy.checks.run.settings import Settings

log = logging.getLogger(__name__)

LONGEST = 500_000
"""Maximum length in characters of a text to read; a longer one is mirrored, but is data, not a program."""
_MANY = 64
"""Number of edits in a message from which on they are applied together."""
_NAMES = {
    "shellscript": "buffer.sh",
    "sh": "buffer.sh",
    "bash": "buffer.sh",
    "json": "ds_config.json",
    "jsonc": "ds_config.json",
    "yaml": "buffer.yaml",
    "pip-requirements": "requirements.txt",
    "requirements": "requirements.txt",
    "dockerfile": "Dockerfile",
}
"""Language id of the client -> file name by which a buffer without a path is read."""


def path_of(uri: str) -> str:
    """Return the path of a file; empty if the URI is not a file, such as a buffer that was never saved."""
    try:
        return to_fs_path(uri) or ""
    except ValueError:  # not a URI
        return ""


def canonical_uri(uri: str) -> str:
    """Return a URI in one canonical spelling; clients escape differently from message to message."""
    return unquote(uri)


class Document:
    """One text, or one cell of a notebook."""

    def __init__(
        self, item: types.TextDocumentItem, notebook: NotebookDocument | None = None, modules: Modules | None = None
    ) -> None:
        self.uri = item.uri
        self.language = str(getattr(item.language_id, "value", item.language_id)).lower()
        self.version: int | None = item.version
        self.notebook = notebook
        self.text = Text(item.text)
        self.path = path_of(item.uri)
        self.memory = LastGood()
        self.modules = modules
        self.seen: tuple[Settings, list[Problem]] | None = None
        """Settings and problems of the last check of this version."""

    def change(self, changes: Iterable[types.TextDocumentContentChangeEvent], positions: Positions) -> None:
        """Apply edits in the client's order."""
        changes = list(changes)
        if len(changes) > _MANY and (after := _edit_lines(self.text, changes, positions)) is not None:
            self.text, changes = after, ()
            self.memory = LastGood()
        for change in changes:
            if isinstance(change, types.TextDocumentContentChangePartial):
                span = positions.span(self.text, change.range)
                self.text = Text(self.text[: span.start] + change.text + self.text[span.end :])
                self.memory.record_edit(span, len(change.text))
            else:
                self.text = Text(change.text)
                self.memory = LastGood()
        if self.modules is not None:
            self.modules.refresh()
        self.forget()

    def forget(self) -> None:
        """Drop what was parsed at once, since its reference cycles would wait for the garbage collector.

        A program takes over the text as it is now: what an edit leaves unchanged is not parsed and analysed again.
        """
        source = self.__dict__.pop("source", None)
        if isinstance(source, Code) and len(self.text) <= LONGEST:
            source.revise(self.text)
            source.project = self.modules.project if self.modules is not None else None
            self.__dict__["source"] = source
        elif source is not None:
            source.__dict__.clear()
        self.seen = None

    @cached_property
    def source(self) -> Source | None:
        """The text, parsed once per version for the checks; None if no check applies to it."""
        if len(self.text) > LONGEST:
            _tell_once(self.uri)
            return None
        if self.notebook is not None:
            return None  # read with the other cells
        return self.read(self.text)

    def read(self, text: str) -> Source | None:
        """Parse another text as this document."""
        source = read_text(self.path, self.language, text)
        if source is not None and self.modules is not None:
            source.project = self.modules.project
        return source

    @property
    def code(self) -> Code | None:
        """The Python code that this text is, or is a part of."""
        source = self.notebook.read.code if self.notebook else self.source
        return source if isinstance(source, Code) else None


def _edit_lines(
    text: str, changes: Sequence[types.TextDocumentContentChangeEvent], positions: Positions
) -> Text | None:
    """Return the text after many edits, each of which costs as much as its lines; None if returns may end lines."""
    if "\r" in text or any("\r" in change.text for change in changes):
        return None
    lines = text.split("\n")
    for change in changes:
        if isinstance(change, types.TextDocumentContentChangePartial):
            (first, begin), (last, end) = sorted(
                positions.place(lines, p) for p in (change.range.start, change.range.end)
            )
            lines[first : last + 1] = (lines[first][:begin] + change.text + lines[last][end:]).split("\n")
        else:
            lines = change.text.split("\n")
    return Text("\n".join(lines))


@lru_cache(maxsize=1_000)
def _tell_once(uri: str) -> None:
    log.warning("%s is too long to be checked", uri)


def read_text(path: str, language: str, text: str) -> Source | None:
    """Parse a text by its language, else by its name."""
    if language == "python":
        return Code(text, path=path, notebook=path.endswith(".ipynb"))
    if path and (source := parse_file(path, text)) is not None:
        return source
    return parse_file(_NAMES[language], text) if language in _NAMES and not path else None


class CellPart(NamedTuple):
    """Kind of a cell and the URI of its text."""

    kind: str
    uri: str


class NotebookDocument:
    """Cells of a notebook in their order."""

    def __init__(self, documents: Documents, uri: str, cells: Sequence[types.NotebookCell]) -> None:
        self.documents = documents
        self.uri = uri
        self.path = path_of(uri)
        self.modules = documents.modules(self.path)
        self.cells = [_cell(c) for c in cells]
        self.seen: tuple[Settings, dict[str, list[Problem]]] | None = None
        """Settings and problems by cell of the last check."""

    def forget(self) -> None:
        """Drop what was parsed of all cells after one of them changed."""
        read = self.__dict__.pop("read", None)
        for source in read.sources if read else ():
            source.__dict__.clear()
        self.seen = None

    def text(self, number: int) -> Document | None:
        """Return the text of a cell; None if the client did not open it."""
        return self.documents.get(self.cells[number].uri)

    @cached_property
    def read(self) -> Notebook:
        """The cells, parsed together."""
        rows: list[tuple[str, str]] = []
        for number, cell in enumerate(self.cells):
            document = self.text(number)
            known = document is not None and document.language == "python"
            rows.append((cell.kind if known else "markdown", document.text if document else ""))
        if sum(len(text) for _, text in rows) > LONGEST:
            _tell_once(self.uri)
            rows = [("markdown", "")] * len(rows)
        notebook = Notebook(rows, path=self.path)
        if self.modules is not None:
            self.modules.refresh()
            notebook.code.project = self.modules.project
        return notebook


def _cell(cell: types.NotebookCell) -> CellPart:
    return CellPart("code" if cell.kind == types.NotebookCellKind.Code else "markdown", cell.document)


class Documents:
    """All texts and notebooks that are open."""

    def __init__(self) -> None:
        self.positions = Positions()
        self._texts: dict[str, Document] = {}
        self._notebooks: dict[str, NotebookDocument] = {}

    def get(self, uri: str) -> Document | None:
        """Return an open text; None if it is not open."""
        return self._texts.get(canonical_uri(uri))

    def notebook(self, uri: str) -> NotebookDocument | None:
        """Return an open notebook; None if it is not open."""
        return self._notebooks.get(canonical_uri(uri))

    def __iter__(self) -> Iterator[Document]:
        return iter(tuple(self._texts.values()))

    def open(self, item: types.TextDocumentItem) -> Document:
        """Add an opened text, replacing an earlier one."""
        document = self._texts[canonical_uri(item.uri)] = Document(item, modules=self.modules(path_of(item.uri)))
        return document

    def modules(self, path: str) -> Modules | None:
        """Return the modules around a file; None for a buffer that was never saved."""
        return Modules(path, self._editor_texts) if path else None

    def _editor_texts(self) -> dict[str, str]:
        """Return the editor's texts by the paths of their files."""
        return {d.path: d.text for d in self._texts.values() if d.path}

    def change(self, params: types.DidChangeTextDocumentParams) -> Document | None:
        """Apply an edit of a text; return the text, or None if it is not open."""
        document = self.get(params.text_document.uri)
        if document is None:
            log.warning("%s was changed but never opened", params.text_document.uri)
            return None
        document.change(params.content_changes, self.positions)
        document.version = params.text_document.version
        if document.notebook:
            document.notebook.forget()
        return document

    def close(self, uri: str) -> None:
        """Remove a closed text."""
        self._texts.pop(canonical_uri(uri), None)

    def reread(self, path: str) -> list[Document]:
        """Return the texts that depend on a changed file, one cell for each notebook."""
        found: dict[int, Document] = {}
        for document in self:
            whole = document.notebook or document
            modules = whole.modules
            if document.path != path and modules is not None and modules.read(path) and modules.refresh():
                whole.forget()
                found[id(whole)] = document
        return list(found.values())

    def open_notebook(self, params: types.DidOpenNotebookDocumentParams) -> NotebookDocument:
        """Add an opened notebook and the texts of its cells."""
        given = params.notebook_document
        notebook = self._notebooks[canonical_uri(given.uri)] = NotebookDocument(self, given.uri, given.cells)
        for item in params.cell_text_documents:
            self._texts[canonical_uri(item.uri)] = Document(item, notebook)
        return notebook

    def change_notebook(
        self, params: types.DidChangeNotebookDocumentParams
    ) -> tuple[NotebookDocument | None, list[str]]:
        """Apply added, removed, moved or edited cells; return the notebook and the URIs of removed cells."""
        notebook = self.notebook(params.notebook_document.uri)
        if notebook is None:
            log.warning("%s was changed but never opened", params.notebook_document.uri)
            return None, []
        notebook.forget()
        gone: list[str] = []
        cells = params.change.cells
        if cells is None:
            return notebook, gone
        if structure := cells.structure:
            start, count = structure.array.start, structure.array.delete_count
            notebook.cells[start : start + count] = [_cell(c) for c in structure.array.cells or ()]
            for item in structure.did_open or ():
                self._texts[canonical_uri(item.uri)] = Document(item, notebook)
            for closed in structure.did_close or ():
                self.close(closed.uri)
                gone.append(closed.uri)
        for data in cells.data or ():  # a cell may turn from code to Markdown
            notebook.cells = [
                _cell(data) if canonical_uri(c.uri) == canonical_uri(data.document) else c for c in notebook.cells
            ]
        for content in cells.text_content or ():
            self.change(types.DidChangeTextDocumentParams(content.document, content.changes))
        return notebook, gone

    def close_notebook(self, uri: str) -> list[str]:
        """Remove a closed notebook; return the URIs of its cells."""
        notebook = self._notebooks.pop(canonical_uri(uri), None)
        if notebook is None:
            return []
        for cell in notebook.cells:
            self.close(cell.uri)
        return [cell.uri for cell in notebook.cells]
