"""Finds the line of the program that wrote a file which it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug.account.last_bindings import Making
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.source.python.names import dotted_name, keyword

_LAST = 10**9
_WRITES = {
    "load": ("save", "dump"),
    "safe_load": ("dump", "safe_dump"),
    "full_load": ("dump", "safe_dump"),
    "load_file": ("save_file",),
}
"""Function that reads an object from a file -> those that write one: `torch.load` -> `torch.save`."""
_PATHS = ("f", "file", "filename", "path", "stream", "fp")
_IMPORTS = 24
"""Maximum number of imported names whose modules are looked at."""


def writer_of(made: Making, sources: Sources) -> Making | None:
    """Return the call that wrote the object which an expression reads; None if several may have, or none."""
    read = made.value if isinstance(made.value, ast.Call) else None
    wanted = _WRITES.get(dotted_name(read.func).rpartition(".")[2], ()) if read is not None else ()
    if read is None or not wanted:
        return None
    found = [
        (program, call)
        for program in own_programs(made.scope, sources)
        for call in program.code.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute | ast.Name)
        and dotted_name(call.func).rpartition(".")[2] in wanted
        and _is_of(read, call, made.scope.program, program)
    ]
    if len(found) > 1:
        named = [each for each in found if _path(each[1], 1) == _path(read, 0)]
        found = named or found
    if len(found) != 1:
        return None
    program, call = found[0]
    home = program.code.scope(call)
    scope = Scope(program.file, call.lineno, getattr(home, "name", ""), program=program, node=home, call=call,
                  reached=_LAST)  # fmt: skip
    return Making("file", call, scope, call.args[0], (call.args[0],))


def _is_of(read: ast.Call, call: ast.Call, reads: Program | None, writes: Program) -> bool:
    """True if a call writes with the library that another one reads with, and what it writes is there to be read."""
    if not call.args or (len(call.args) < 2 and not _path(call, 1)):
        return False
    one = reads.code.name(read.func).partition(".")[0] if reads is not None else ""
    return writes.code.name(call.func).partition(".")[0] == one


def _path(call: ast.Call, position: int) -> str:
    given = call.args[position] if len(call.args) > position else None
    given = given or next((found for name in _PATHS if (found := keyword(call, name)) is not None), None)
    return ast.unparse(given) if given is not None else ""


def own_programs(scope: Scope, sources: Sources) -> Iterator[Program]:
    """Yield the user's files that are known here: of the frames, and those that they import."""
    own = [s.program for s in (scope, *scope.callers) if s.user and s.program is not None]
    seen: dict[str, Program] = {program.file: program for program in own}
    for program in list(seen.values())[:4]:
        for imported in list(dict.fromkeys(program.code.imports.values()))[:_IMPORTS]:
            for module in (imported, imported.rpartition(".")[0]):
                found = sources.of_module(module, program.file) if module else None
                if found is not None:
                    seen.setdefault(found.file, found)
    yield from seen.values()
