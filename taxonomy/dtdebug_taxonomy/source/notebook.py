"""Notebooks: the code cells joined to one program, and the scripts in cells.

Syntax of IPython alone (`%magic`, `!command`, `help?`) is replaced by comments without moving
a column, so that a finding's place in the joined text leads back to its cell.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from dtdebug_taxonomy.source.kinds import parse_file
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.lenient_parser import parse_program
from dtdebug_taxonomy.source.source import Source
from dtdebug_taxonomy.source.text import Span

_LINE_MAGIC = re.compile(
    r"^(?P<indent>[ \t]*)(?P<mark>[%!?]|(?:[\w.,\[\] ]+=[ \t]*[%!]))"
    r"(?P<more>(?:(?:[^\n]*\\\n)+[^\n]*)?)",
    re.MULTILINE,
)
_HELP = re.compile(r"^[ \t]*[\w.]+\?{1,2}[ \t]*$", re.MULTILINE)
_CELL_MAGIC = re.compile(r"^%%(?P<name>\w+)[ \t]*(?P<rest>[^\n]*)(?:\n|$)")
_SHELL = re.compile(
    r"^[ \t]*(?:!{1,2}|%sx|%system)(?P<command>(?:[^\n]*\\\n)*[^\n]*)$"
    r"|^[ \t]*%env[ \t]+(?P<variable>\w+)[ \t=]+(?P<value>.*)$",
    re.MULTILINE,
)
_PYTHON_MAGICS = frozenset({"time", "timeit", "capture", "prun", "px", "distributed", "rank"})
"""Cell magics whose body is Python, for these kernels' ranks or for this one."""
_SHELL_MAGICS = frozenset({"bash", "sh", "script", "system"})

_LINE = re.compile(r"(?P<file>\S{1,200}\.\w{1,10} )?\bline (?P<line>\d{1,7})\b(?P<of> of )?")
"""Line in a message; that of another file is left."""


class Piece(NamedTuple):
    """Part of the joined text, or of a script, and its origin."""

    start: int
    cell: int
    offset: int
    """Offset in the cell's own source."""


class CellPlace(NamedTuple):
    """Span within one cell."""

    cell: int
    span: Span


class Notebook:
    """The cells of a notebook as sources for the checks.

    `cells` are (kind, source) with kind `code` or `markdown`; index 0 is the first cell.
    """

    def __init__(self, cells: Sequence[tuple[str, str]], *, path: str = "") -> None:
        self.cells = cells
        self._pieces: dict[int, list[Piece]] = {}
        self.sources: list[Source] = []
        joined, pieces, at = [], [], 0
        for number, (kind, text) in enumerate(cells):
            if kind != "code":
                continue
            python, start = self._cell(number, text, path)
            pieces.append(Piece(at, number, start))
            joined.append(python)
            at += len(python) + 1
        self.code = Code("\n".join(joined), path=path, notebook=True)
        """All Python that runs in the kernel, in the order of the cells."""
        self._add(self.code, pieces)

    def _add(self, source: Source, pieces: list[Piece]) -> None:
        self.sources.append(source)
        self._pieces[id(source)] = pieces

    def _cell(self, number: int, text: str, path: str) -> tuple[str, int]:
        """Return the part of a cell that is Python of this kernel, and its beginning; adds the cell's scripts."""
        magic = _CELL_MAGIC.match(text)
        if magic is None or magic["name"] in _PYTHON_MAGICS:
            start = magic.end() if magic else 0
            self._commands(number, text, start)
            return _plain(text[start:]), start
        body = magic.end()
        name = magic["rest"].split()[-1] if magic["name"] in {"writefile", "file"} and magic["rest"].strip() else ""
        if magic["name"] in _SHELL_MAGICS:
            name = "cell.sh"
        if name and (source := parse_file(name, text[body:])) is not None:
            self._add(source, [Piece(0, number, body)])
        return "", body

    def _commands(self, number: int, text: str, start: int) -> None:
        for found in _SHELL.finditer(text, start):
            if found["command"] is not None:
                script, offset = found["command"], found.start("command")
            else:
                script, offset = f"{found['variable']}={found['value']}", found.start("variable")
                if text[offset : offset + len(script)] != script:  # `%env X 1`: different columns
                    continue
            if (source := parse_file("cell.sh", script)) is not None:
                self._add(source, [Piece(0, number, offset)])

    def begins(self, cell: int) -> int:
        """Return where the Python of a code cell begins in the joined text."""
        return next(piece.start for piece in self._pieces[id(self.code)] if piece.cell == cell)

    def place(self, source: Source, span: Span) -> CellPlace:
        """Return the place in the notebook of a span of one of the sources."""
        pieces = self._pieces[id(source)]
        piece = pieces[max(bisect_right(pieces, span.start, key=lambda p: p.start) - 1, 0)]
        shift = piece.offset - piece.start
        length = len(self.cells[piece.cell][1])
        return CellPlace(piece.cell, Span(min(span.start + shift, length), min(span.end + shift, length)))

    def message_in_cell(self, source: Source, span: Span, message: str, names: Sequence[str] = ()) -> str:
        """Return a message on a span with lines of its cell; another cell is named, by its number without `names`."""
        home, starts = self.place(source, span).cell, source.text.starts

        def in_cell(found: re.Match[str]) -> str:
            number = int(found["line"])
            if found["file"] or found["of"] or not 0 < number <= len(starts):
                return found[0]
            at = self.place(source, Span(starts[number - 1], starts[number - 1]))
            line = self.cells[at.cell][1].count("\n", 0, at.span.start) + 1
            return f"line {line}" + (f" of cell {names[at.cell] if names else at.cell + 1}" if at.cell != home else "")

        return _LINE.sub(in_cell, message)


def _plain(text: str) -> str:
    """Return the Python of a cell, with every other line as a comment of the same length."""
    if not ("%" in text or "!" in text or "?" in text) or parse_program(text).whole:
        return text
    text = _LINE_MAGIC.sub(_comment, text)
    return _HELP.sub(lambda m: "#" + m[0][1:], text)


def _comment(found: re.Match[str]) -> str:
    """Keep `x = !ls` as an assignment, since it binds a name; turn other magics into comments."""
    mark, more = found["mark"], re.sub(r"(?<=\n)[^\n]", "#", found["more"])
    if mark[-2:-1] in {" ", "\t"}:
        return f"{found['indent']}{mark[:-2]}0#{more}"
    return f"{found['indent']}#{mark[1:]}{more}"


class NotebookError(ValueError):
    """File that is not a notebook: the message states the reason."""


def notebook_cells(text: str) -> list[tuple[str, str]]:
    """Return the (kind, source) of all cells of a notebook file, versions 3 and 4.

    Raises:
        NotebookError: it is not JSON or has no cells.

    """
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NotebookError(f"is not a notebook: {error}") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict) and isinstance(notebook.get("worksheets"), list):
        cells = [c for sheet in notebook["worksheets"] if isinstance(sheet, dict) for c in sheet.get("cells") or []]
    if not isinstance(cells, list):
        raise NotebookError("is not a notebook: it has no list of cells")
    return [_source(cell) for cell in cells]


def _source(cell: Any) -> tuple[str, str]:
    """Return (kind, source); a damaged cell counts as an empty one, so that the others keep their numbers."""
    if not isinstance(cell, dict):
        return "markdown", ""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(s for s in source if isinstance(s, str))
    return ("code" if cell.get("cell_type") == "code" else "markdown"), source if isinstance(source, str) else ""
