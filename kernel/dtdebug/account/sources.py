"""The source of a frame: the user's whole file, or only the function of a library, which may be large."""

from __future__ import annotations

import ast
import linecache
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from dtdebug.account.objects import item
from dtdebug_taxonomy.source.python.bindings import Binding, bindings
from dtdebug_taxonomy.source.python.calls import CallIndex
from dtdebug_taxonomy.source.text import Text
from dtdebug_taxonomy.stacks.frames import is_library

MOST_BYTES = 400_000
"""Maximum size of a file of the user's that is read; larger ones are generated."""
_LONGEST = 1_000
"""Maximum number of lines of a library's function."""
_CELLS = 200
_IMPORT = re.compile(r"(?:import|from)\s[^(]*$")
"""An import at the margin of a cell, on one line."""


class Program:
    """Part of a program that was parsed: a file, a cell, or one function of a library."""

    def __init__(self, file: str, text: str, *, shift: int = 0) -> None:
        self.file = file
        self.code = CallIndex(Text(text), path=file)
        self.shift = shift
        """Number of columns that were cut from the left of each line."""
        self._bindings: dict[tuple[ast.AST, str], list[Binding]] | None = None

    @property
    def tree(self) -> ast.Module:
        """Syntax tree."""
        return self.code.tree

    @property
    def bindings(self) -> dict[tuple[ast.AST, str], list[Binding]]:
        """(Scope, name) -> its bindings."""
        if self._bindings is None:
            self._bindings = bindings(self.code)
        return self._bindings

    @property
    def modules(self) -> tuple[str, str]:
        """Names that it has for torch and torch.distributed; empty if it does not import them."""
        names = {whole: name for name, whole in reversed(list(self.code.imports.items()))}
        torch = names.get("torch", "")
        return torch, names.get("torch.distributed", f"{torch}.distributed" if torch else "")

    def line(self, number: int) -> str:
        """Return a source line as written, without its indentation."""
        return self.code.text.line(number).strip()


class Sources:
    """Programs by file, each parsed once; `read` returns the lines of a file, or none."""

    def __init__(self, read: Callable[[str], Sequence[str]]) -> None:
        self._read = read
        self._known: dict[tuple[str, int], Program | None] = {}
        self.stack: Sequence[Any] = ()
        """Scopes of the frames of the failure, where there are any."""

    @property
    def of_all(self) -> list[Program]:
        """The user's files that were read so far."""
        return [each for (_, first), each in self._known.items() if not first and each is not None]

    def of_user(self, file: str) -> Program | None:
        """Return the user's file, or None if there is no source that can be parsed."""
        if (file, 0) not in self._known:
            text = "".join(self._read(file))
            self._known[file, 0] = program_of(file, text) if text.strip() and len(text) <= MOST_BYTES else None
        return self._known[file, 0]

    def of_function(self, file: str, line: int, first: int = 0) -> Program | None:
        """Return the function of a library around a line, at its place in the file; `first`: line of its `def`."""
        lines = self._read(file)
        if not 0 < line <= len(lines):
            return None
        first = first or _head(lines, line)
        if (file, first) not in self._known:
            self._known[file, first] = _function(file, lines, line, first)
        return self._known[file, first]

    def of_module(self, module: str, near: str) -> Program | None:
        """Return the user's file of an imported module, by its name and the file that imports it."""
        loaded = getattr(sys.modules.get(module), "__dict__", {}).get("__file__")
        if isinstance(loaded, str) and is_library(loaded):  # a terminal's cells have no folder: sys.path is searched
            return None
        dots = len(module) - len(module.lstrip("."))
        folder = Path(near).parent
        for _ in range(dots - 1):
            folder = folder.parent
        parts = module.strip(".").split(".")
        for home in (folder, folder.parent):
            for path in (home.joinpath(*parts).with_suffix(".py"), home.joinpath(*parts, "__init__.py")):
                if not is_library(str(path)) and (found := self.of_user(str(path))) is not None:
                    return found
        return None


def _head(lines: Sequence[str], line: int) -> int:
    """Return the line of the `def` around a line, by the indentation; 1 for code of the module."""
    width = _width(lines[line - 1])
    for number in range(line, max(0, line - _LONGEST), -1):
        text = lines[number - 1]
        if text.strip() and (_width(text) < width or number == line):
            if text.lstrip().startswith(("def ", "async def ")):
                return number
            width = min(width, _width(text)) if not text.lstrip().startswith((")", "]", "}", "#")) else width
    return 1


def _width(text: str) -> int:
    return len(text) - len(text.lstrip())


def _function(file: str, lines: Sequence[str], line: int, first: int) -> Program | None:
    """Parse the function that begins at a line, with its decorators, as long as its indentation lasts."""
    width = _width(lines[first - 1])
    last = line
    for number in range(line + 1, min(len(lines), first + _LONGEST) + 1):
        text = lines[number - 1]
        if text.strip() and _width(text) <= width and not text.lstrip().startswith((")", "]", "}", "#")):
            break
        last = number
    text = "\n" * (first - 1) + textwrap.dedent("".join(lines[first - 1 : last]))
    found = Program(file, text, shift=width)
    return found if found.tree.body else None


def live_lines(file: str) -> Sequence[str]:
    """Return the lines of a file of a living program; those of a cell may be in memory only."""
    linecache.checkcache(file)
    return linecache.getlines(file)


def is_stale(program: Program, code: CodeType) -> bool:
    """True if the file on disk was written since this process began, and is not what the running code was made of."""
    try:
        if Path(program.file).stat().st_mtime < process_start() - 1:
            return False
    except (OSError, ValueError):  # a cell, or code that was made in memory
        return False
    try:
        whole = compile(str(program.code.text), program.file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return True
    found = _code_at(whole, code)
    return found is None or found.co_code != code.co_code or found.co_names != code.co_names


def process_start() -> float:
    """Return when this process began, in seconds since the epoch; now, where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return time.time()
    return time.time() - age


def _code_at(whole: CodeType, wanted: CodeType) -> CodeType | None:
    waiting = [whole]
    while waiting:
        each = waiting.pop()
        if each.co_qualname == wanted.co_qualname and each.co_firstlineno == wanted.co_firstlineno:
            return each
        waiting += [part for part in each.co_consts if type(part) is CodeType]
    return None


def is_cell(file: str) -> bool:
    """True for the name that a kernel gives to the code of a cell."""
    return "ipykernel_" in file or file.startswith("<ipython-input-")


def program_of(file: str, text: str) -> Program:
    """Return the program of a file; a cell knows what all cells of its kernel import."""
    program = Program(file, text)
    if is_cell(file):
        cells = [entry[2] for name, entry in list(linecache.cache.items()) if len(entry) == 4 and is_cell(name)]
        lines = tuple(dict.fromkeys(line for cell in cells for line in cell if _IMPORT.match(line)))
        program.code.imports = {**_imports(lines), **program.code.imports}
    return program


@lru_cache(maxsize=1)
def _imports(lines: tuple[str, ...]) -> dict[str, str]:
    return Program("", "".join(lines)).code.imports


def cells_of(world: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (file, source) of the cells of a notebook that ran, the newest first; each has a file in `linecache`."""
    cells = item(world, "In")
    texts = [text for text in cells[-_CELLS:] if type(text) is str and text.strip()] if type(cells) is list else []
    files = {}
    for file, entry in list(linecache.cache.items()):
        if len(entry) == 4 and is_cell(file):
            files["".join(entry[2]).strip()] = file
    return [(files[text.strip()], text) for text in reversed(texts) if text.strip() in files]
