"""Lines that write a file of the name that a loop waits for: `while not os.path.exists(marker)`."""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

from dtdebug.account.objects import is_exactly
from dtdebug.account.places import place
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program
from dtdebug_taxonomy.model.account import Link, NamedValue
from dtdebug_taxonomy.source.python.file_writes import written_path

_ASKS = frozenset({"exists", "isfile", "is_file", "isdir", "is_dir", "getsize"})


def writers_of_polled(test: ast.expr, scope: Scope) -> Iterator[Link]:
    """Yield the lines of the program that write a file with the last name of one that a test asks for."""
    program = scope.program
    for call in (n for n in ast.walk(test) if isinstance(n, ast.Call) and program is not None):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in _ASKS or program is None:
            continue
        asked = scope.value(call.args[0] if call.args else func.value)
        if is_exactly(asked, (str, pathlib.PosixPath)):
            yield from _writers(pathlib.PurePath(asked).name, program)


def _writers(name: str, program: Program) -> Iterator[Link]:
    for call in program.code.nodes(ast.Call):
        path = written_path(call)
        if path is not None and name and name in _names_in(path, program):
            home = program.code.scope(call)
            scope = Scope(program.file, call.lineno, getattr(home, "name", ""), program=program, node=home)
            yield Link(value=NamedValue(ast.unparse(path)), how="file", place=place(scope, call))


def _names_in(path: ast.expr, program: Program) -> set[str]:
    """Return the last parts of the strings in a path, and in what a name in it was assigned."""
    values = [path]
    if isinstance(path, ast.Name):
        found = (rows for (_, name), rows in program.bindings.items() if name == path.id)
        values += [row.value for rows in found for row in rows if row.value is not None]
    texts = [n.value for each in values for n in ast.walk(each) if isinstance(n, ast.Constant)]
    return {pathlib.PurePath(text).name for text in texts if isinstance(text, str)}
