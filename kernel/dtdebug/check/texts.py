"""Texts of checked files, read again for the lines that findings are in: results hold no source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from dtdebug.check.examine_file import CheckFinding, PlacedEdit
from dtdebug.check.files import UnreadableError, read_source
from dtdebug_taxonomy.source.notebook import NotebookError, notebook_cells
from dtdebug_taxonomy.source.text import Text


class Texts:
    """Lines of files, and of the cells of notebooks; each file is read once."""

    def __init__(self) -> None:
        self._known: dict[str, list[list[str]]] = {}

    def lines(self, finding: CheckFinding) -> list[str]:
        """Return the lines of the file or cell that a finding is in; none if it can't be read any more."""
        if finding.path not in self._known:
            self._known[finding.path] = _parts(Path(finding.path))
        parts = self._known[finding.path]
        number = max(finding.cell - 1, 0)
        return parts[number] if number < len(parts) else []

    def line(self, finding: CheckFinding) -> str:
        """Return the line at which a finding begins."""
        lines = self.lines(finding)
        return lines[finding.line - 1] if finding.line <= len(lines) else ""


def _parts(path: Path) -> list[list[str]]:
    try:
        text = read_source(path).text
        texts = [cell for _, cell in notebook_cells(text)] if path.suffix == ".ipynb" else [text]
    except (UnreadableError, NotebookError):
        return []
    return [Text(text).lines() for text in texts]


def apply_edits(lines: Sequence[str], edits: Iterable[PlacedEdit]) -> list[str]:
    """Return lines as edits change them."""
    text = "\n".join(lines)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for e in sorted(edits, key=lambda e: e.start, reverse=True):
        begin, end = (starts[line - 1] + column - 1 for line, column in (e.start, e.end))
        text = text[:begin] + e.text + text[end:]
    return text.split("\n")
