"""Shows the latest failed runs at the lines that they stopped at."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from lsprotocol import types
from pygls.uris import from_fs_path

from dtdebug_lsp.diagnostics import SOURCE
from dtdebug_lsp.documents import Document, Documents, canonical_uri
from dtdebug_lsp.hovers import symptom_address
from dtdebug_lsp.positions import Positions
from dtdebug_taxonomy import named_files
from dtdebug_taxonomy.presentation.editor_marks import DISMISSED, FILE, MOST, Failure, Failures, Mark
from dtdebug_taxonomy.source.text import Span, Text

log = logging.getLogger(__name__)

T = TypeVar("T")

_LARGEST = 4_000_000
"""Maximum size in bytes of a file in which to search a line."""
_MOVED = 200
"""Maximum number of lines by which a line may have moved."""


Shown = dict[str, list[tuple[Failure, types.Diagnostic]]]
"""URI -> shown failures with their diagnostics."""


class MarkPlace(NamedTuple):
    """Current place of a mark."""

    uri: str
    where: types.Range
    is_stale: bool


class Handoff:
    """Failures recorded by other processes, without those that the user has dismissed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state: object = None
        self._failures: tuple[Failure, ...] = ()
        self._dismissed: tuple[str, ...] = ()

    def refresh(self) -> bool:
        """Read the files again if they changed; return whether they did."""
        state = [_state(self.folder / name) for name in (FILE, DISMISSED)]
        if state == self._state:
            return False
        self._state = state
        self._failures = _read(self.folder / FILE, Failures, Failures()).failures
        self._dismissed = _read(self.folder / DISMISSED, tuple[str, ...], ())
        return True

    @property
    def failures(self) -> list[Failure]:
        """Failures to show, newest first."""
        return [f for f in self._failures if f.id not in self._dismissed and f.marks]

    def concerns(self, path: str) -> bool:
        """True if an edit of a file, or of a cell, can move what is shown."""
        return any(m.file == path or (m.cell and not path) for f in self.failures for m in f.marks)

    def dismiss(self, wanted: str | None) -> bool:
        """Dismiss a failure by its id, else the newest; return whether there was one."""
        self.refresh()
        found = next((f for f in self.failures if wanted in (None, f.id)), None)
        if found is None:
            return False
        self._dismissed = (found.id, *self._dismissed)[: 2 * MOST]
        self._state = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(self._dismissed))
            Path(name).replace(self.folder / DISMISSED)
        except OSError as error:
            log.warning("%s can't be written: %s; the failure is back after a restart", self.folder / DISMISSED, error)
            return True
        return True


def _state(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _read(path: Path, kind: type[T], default: T) -> T:
    """Read a file of the state directory; an unreadable one counts as empty."""
    with suppress(OSError):
        if path.is_file() and path.stat().st_size <= _LARGEST:
            try:
                return msgspec.json.decode(path.read_bytes(), type=kind)
            except msgspec.MsgspecError as error:
                log.warning("%s can't be read: %s", path, error)
    return default


def diagnostics(failures: list[Failure], documents: Documents, *, related: bool) -> Shown:
    """Return one diagnostic per failure, at the first of its marks that is found, by URI."""
    found: Shown = defaultdict(list)
    for failure in failures:
        placed = [(m, p) for m in failure.marks if (p := place_now(m, documents)) is not None]
        if not placed:
            continue
        (first, at), *others = placed
        found[at.uri].append((failure, _diagnostic(failure, first, at, others if related else [])))
    return found


def _diagnostic(failure: Failure, first: Mark, at: MarkPlace, others: list[tuple[Mark, MarkPlace]]) -> types.Diagnostic:
    message = f"{failure.message or first.says}\n{failure.title}"
    return types.Diagnostic(
        range=at.where,
        message=f"stale: {message}" if at.is_stale else message,
        severity=types.DiagnosticSeverity.Hint if at.is_stale else types.DiagnosticSeverity.Error,
        tags=[types.DiagnosticTag.Unnecessary] if at.is_stale else None,
        code=failure.code,
        code_description=types.CodeDescription(symptom_address(failure.code)),
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(types.Location(p.uri, p.where), m.says) for m, p in others
        ]
        or None,
        data={"failure": failure.id},
    )


def place_now(mark: Mark, documents: Documents) -> MarkPlace | None:
    """Return the current place of a mark's line in an open text, a cell or a file; None if it is gone."""
    if mark.cell:
        return next((p for d in documents if (p := _in_cell(mark, d, documents.positions))), None)
    uri = from_fs_path(mark.file) if os.path.isabs(mark.file) else None  # noqa: PTH117 a path of any system
    if uri is None:
        return None
    document = documents.get(uri)
    if document is not None:
        return _in_text(mark, document.text, document.uri, documents.positions)
    text = _file(mark.file)
    return _in_text(mark, text, uri, documents.positions) if text is not None else None


def _file(path: str) -> Text | None:
    with suppress(OSError, ValueError):
        return Text(named_files.read_file(path, _LARGEST).decode("utf-8", "replace"))
    return None


def _in_cell(mark: Mark, document: Document, positions: Positions) -> MarkPlace | None:
    if document.notebook is None or document.text.strip() != mark.cell.strip():
        return None
    return _in_text(mark, document.text, document.uri, positions)


def _in_text(mark: Mark, text: Text, uri: str, positions: Positions) -> MarkPlace | None:
    line, is_stale = mark.line, False
    words = mark.words.strip()
    if words and text.line(line).strip() != words:
        near = [n for n in _outwards(line, len(text.starts)) if text.line(n).strip() == words]
        line, is_stale = (near[0], False) if near else (line, True)
    if not 0 < line <= len(text.starts):
        return None
    written = text.line(line)
    start = text.starts[line - 1] + len(written) - len(written.lstrip())
    return MarkPlace(uri, positions.range(text, Span(start, max(start, text.end_of_line(line)))), is_stale)


def _outwards(line: int, last: int) -> Iterator[int]:
    """Yield the lines around a line, nearest first."""
    for away in range(1, _MOVED):
        for number in (line - away, line + away):
            if 0 < number <= last:
                yield number


def actions(shown: Shown, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return actions that dismiss the failures in a range, for clients without lenses."""
    kind = types.CodeActionKind.QuickFix
    if params.context.only and kind not in params.context.only:
        return []
    first, last = params.range.start.line, params.range.end.line
    return [
        types.CodeAction(
            "Dismiss this failure",
            kind,
            [d],
            command=types.Command("Dismiss this failure", "dtdebug.dismissFailure", arguments=[failure.id]),
        )
        for failure, d in shown.get(canonical_uri(params.text_document.uri), [])
        if first <= d.range.end.line and d.range.start.line <= last
    ]


def lenses(shown: Shown, uri: str) -> list[types.CodeLens]:
    """Return the lenses above the lines of a text's failures."""
    rows = []
    for failure, at in shown.get(canonical_uri(uri), []):
        explain = types.Command(f"Explain {failure.code}", "dtdebug.explain", arguments=[failure.code, True])
        dismiss = types.Command("Dismiss this failure", "dtdebug.dismissFailure", arguments=[failure.id])
        rows += [types.CodeLens(at.range, explain), types.CodeLens(at.range, dismiss)]
    return rows
