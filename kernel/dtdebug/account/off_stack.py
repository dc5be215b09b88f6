"""Lines off the stack that a message points at: a set-up that did not run, a rank that writes, a graph kept too long.

No frame leads to them, for what is missing has no line: they are looked for in the program's own files.
"""

from __future__ import annotations

import ast
import dataclasses
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from dtdebug.account.callers import call_into, calls_of, scope_of_call
from dtdebug.account.files import own_programs
from dtdebug.account.first_writes import missing_writes
from dtdebug.account.objects import MISSING
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import Program, Sources
from dtdebug_taxonomy.model.account import How
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS

_NO_GROUP = ("process group has not been initialized", "process group is not initialized")
_FROZEN = ("that requires a gradient", "that require a gradient", "does not require grad and does not have a grad_fn")
_FLAG = "requires_grad"
_SECOND_BACKWARD = ("backward through the graph a second time",)
_MISSING = re.compile(
    r"(?:No such file or directory|Not a directory): (?:'(?P<one>[^']{1,400})'|\"(?P<other>[^\"]{1,400})\")"
)
_SIZED = re.compile(r"[Ss]ize mismatch(?: between [^\n]{1,160}?)? for (?P<name>[\w.]{1,160})")
"""Parameter or buffer whose size a checkpoint does not have."""
_MOST_WRITES = 2
_SET_UP, _DESTROYS = "init_process_group", "destroy_process_group"


class OffStack(NamedTuple):
    """A line that the stack does not show."""

    how: How
    name: str
    node: ast.AST
    scope: Scope
    asked: ast.expr | None = None
    """Test whose operands lead on."""


def lines_off_stack(scope: Scope, message: str, sources: Sources) -> Iterator[OffStack]:
    """Yield the lines that a message points at, the most telling first; `scope`: the user's innermost frame."""
    if any(each in message for each in _NO_GROUP):
        yield from _set_up(scope, sources)
    elif _MISSING.search(message):
        yield from _writer_on_one_rank(scope, message, sources)
    elif any(each in message for each in _SECOND_BACKWARD):
        yield from _kept_from_last_pass(scope)
    elif any(each in message for each in _FROZEN):
        yield from _freezing(scope, sources)
    elif (sized := _SIZED.search(message)) is not None:
        yield from _maker_of(sized["name"], scope, sources)
    elif "'NoneType' object" in message:
        yield from _setter_never_called(scope, sources)
    else:
        yield from _words_of(scope, message, sources)


_WORD = re.compile(r"(?<![\w./-])[\w./-]{1,60}[\w](?![\w/-])")
_TAKEN = re.compile(r"[\[({](?:'[^']{1,60}', ?){1,40}'[^']{1,60}',?[\])}]")
"""List of words in a message: those that the library takes, not the one that it refuses."""
_SPOKEN = 200
"""Maximum number of words of a message that are looked for."""


def _maker_of(name: str, scope: Scope, sources: Sources) -> Iterator[OffStack]:
    """Yield the line that made the part of a model in which a parameter is: of `layers.0.up.weight` that of `up`."""
    programs = [*own_programs(scope, sources)]
    for part in reversed(name.split(".")):
        found = [
            (program, row)
            for program in programs
            for (home, bound), rows in program.bindings.items()
            for row in rows
            if bound == f"self.{part}" and isinstance(home, ast.ClassDef) and row.how == "assign"
        ]
        if not found:
            continue
        program, row = found[0]
        method = program.code.scope(row.node)
        inside = Scope(
            program.file, getattr(row.node, "lineno", 0), getattr(method, "name", ""), program=program, node=method
        )
        if len(found) == 1:
            yield OffStack("attribute", f"self.{part}", row.node, inside, row.value)
        return


def _words_of(scope: Scope, message: str, sources: Sources) -> Iterator[OffStack]:
    """Yield the string of the program that a message speaks of, if it stands in one place off the stack."""
    message = _TAKEN.sub("", message)
    spoken = {w for w in islice(_WORD.findall(message), _SPOKEN) if "_" in w or "/" in w or f"'{w}'" in message}
    found: dict[str, list[tuple[Program, ast.Constant]]] = {}
    for program in own_programs(scope, sources):
        for node in program.code.nodes(ast.Constant):
            if isinstance(node.value, str) and node.value in spoken:
                found.setdefault(node.value, []).append((program, node))
    shown = {(s.file, s.line) for s in (scope, *scope.callers)}
    for rows in found.values():
        program, node = rows[0]
        name = _named_by(node, program)
        if len(rows) == 1 and name and (program.file, node.lineno) not in shown:
            home = program.code.scope(node)
            where = Scope(program.file, node.lineno, getattr(home, "name", ""), program=program, node=home)
            yield OffStack("literal", name, node, where)
            return


def _named_by(node: ast.Constant, program: Program) -> str:
    """Return the key, parameter or name that a string is given to."""
    up = program.code.parent.get(node)
    if isinstance(up, ast.Dict):
        keys = [k for k, v in zip(up.keys, up.values, strict=True) if v is node]
        return str(keys[0].value) if keys and isinstance(keys[0], ast.Constant) else ""
    if isinstance(up, ast.keyword):
        return up.arg or ""
    if isinstance(up, ast.Assign) and up.value is node:
        return ast.unparse(up.targets[0])
    return ""


def _set_up(scope: Scope, sources: Sources) -> Iterator[OffStack]:
    """Yield the test under which the process group is set up, or the function that does it and is never called."""
    programs = dict.fromkeys(s.program for s in (scope, *scope.callers) if s.user and s.program is not None)
    if (ended := next(filter(None, map(_end_of_group, (scope, *scope.callers))), None)) is not None:
        yield ended
        return
    for program in programs:
        for call in program.code.nodes(ast.Call):
            if dotted_name(call.func).rpartition(".")[2] != _SET_UP:
                continue
            home = scope_of_call(call, program, scope)
            inner: ast.AST = call
            for up in program.code.ancestors(call):
                if isinstance(up, ast.If) and inner is not up.test:
                    home = _enter(dataclasses.replace(home, line=up.lineno, call=None), sources)
                    yield OffStack("tested", ast.unparse(up.test), up.test, home, up.test)
                    return
                if isinstance(up, FUNCTIONS):
                    if not program.code.callers.get(up) and program.code.class_of(up) is None:
                        yield OffStack("called", up.name, up, home)
                    return
                inner = up


def _end_of_group(scope: Scope) -> OffStack | None:
    """Return the call before a frame's line, in its own block or one around it, that has destroyed the group."""
    program = scope.program
    at = scope.call if isinstance(scope.call, ast.AST) else None
    if not scope.user or program is None or at is None:
        return None
    inner: ast.AST = program.code.statement(at)
    for up in program.code.ancestors(inner):
        block = next((b for b in _blocks(up) if inner in b), [])
        for each in reversed(block[: block.index(inner)] if block else []):  # type: ignore[arg-type]
            call = each.value if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) else None
            entered = program.code.local_function(call) if call is not None else None
            within = (
                [call, *(s.value for s in entered.body if isinstance(s, ast.Expr))] if entered is not None else [call]
            )
            names = {dotted_name(c.func).rpartition(".")[2] for c in within if isinstance(c, ast.Call)}
            if call is not None and names & {_DESTROYS, _SET_UP}:
                return OffStack("destroyed", ast.unparse(call.func), call, scope) if _DESTROYS in names else None
        if isinstance(up, FUNCTIONS):
            return None
        inner = up
    return None


def _blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block


def _is_never_entered(around: ast.AST, program: Program, scope: Scope, sources: Sources) -> bool:
    """True for a function that no line of the program calls and no frame is in."""
    if not isinstance(around, FUNCTIONS) or program.code.class_of(around) is not None:
        return False
    return not calls_of(around, program, sources) and all(s.node is not around for s in (scope, *scope.callers))


def _freezing(scope: Scope, sources: Sources) -> Iterator[OffStack]:
    """Yield the lines that say which parameters are trained."""
    for program in own_programs(scope, sources):
        code = program.code
        rows: list[tuple[ast.AST, ast.expr | None]] = [
            (call, call.args[0] if call.args else None) for call in code.methods(f"{_FLAG}_")
        ]
        rows += [(a, a.value) for a in code.nodes(ast.Assign) if getattr(a.targets[0], "attr", "") == _FLAG]
        for node, asked in rows:
            around = code.scope(node)
            if _is_never_entered(around, program, scope, sources):
                continue
            home = next((s for s in (scope, *scope.callers) if s.node is around), None)
            home = home or Scope(program.file, 0, getattr(around, "name", ""), program=program, node=around)
            home = _enter(dataclasses.replace(home, line=getattr(node, "lineno", 0)), sources)
            tests = [up.test for up in code.ancestors(node) if isinstance(up, ast.If) and code.scope(up) is around]
            decides = tests[0] if isinstance(asked, ast.Constant) and tests else asked
            yield OffStack("assigned", _FLAG, code.statement(node), home, decides)


def _setter_never_called(scope: Scope, sources: Sources) -> Iterator[OffStack]:
    """Yield the method that gives an attribute its value and is called nowhere, and the call that needs it before."""
    own = scope.value(ast.Name("self"))
    asked = [n for n in ast.walk(scope.call) if isinstance(n, ast.Attribute)] if scope.call is not None else []
    names = [ast.unparse(n) for n in asked if isinstance(n.value, ast.Name) and scope.value(n) is None]
    program = scope.program
    owner = program.code.class_of(scope.node) if program is not None and scope.node is not None else None
    if program is None or owner is None or own is MISSING:
        return
    for name in dict.fromkeys(each for each in names if each.startswith("self.")):
        rows = [r for r in program.bindings.get((owner, name), ()) if r.value is None or not _is_none(r.value)]
        methods = {program.code.function(row.node) for row in rows}
        method = methods.pop() if len(methods) == 1 else None
        if not isinstance(method, FUNCTIONS) or method.name == "__init__" or _is_mentioned(method.name, scope, sources):
            continue
        home = Scope(program.file, method.lineno, method.name, program=program, node=method)
        yield OffStack("called", method.name, method, home)
        entry = next((s for s in scope.callers if s.value(ast.Name("self")) is not own), None)
        if entry is not None and entry.user and isinstance(entry.call, ast.Call):
            yield OffStack("called", ast.unparse(entry.call.func), entry.call, entry)
        return


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_mentioned(name: str, scope: Scope, sources: Sources) -> bool:
    """True if a program speaks of a method anywhere: it may be called by way of that."""
    return any(
        any(n.attr == name for n in program.code.nodes(ast.Attribute))
        or any(n.value == name for n in program.code.nodes(ast.Constant))
        for program in own_programs(scope, sources)
    )


def _enter(home: Scope, sources: Sources) -> Scope:
    """Return a function that has returned with its only call, so that its parameters lead to what they were given."""
    return home if home.live else dataclasses.replace(home, bound=call_into(home, sources))


def _writer_on_one_rank(scope: Scope, message: str, sources: Sources) -> Iterator[OffStack]:
    """Yield the test of the rank under which the missing path is written, the write, and the call that did not wait.

    Where no such write is found before the failing line, the lines of the program that write a file of that name.
    """
    named = _MISSING.search(message)
    if named is None or scope.program is None:
        return
    path = named["one"] or named["other"] or ""
    for write in islice(missing_writes(scope, path, _path_of(scope), sources), _MOST_WRITES):
        program, test = write.program, write.test
        home = scope_of_call(write.call, program, scope)
        if test is not None and write.tested_in is not None and write.caller is not None:
            caller = write.caller
            inside = _function_of(test, write.tested_in)
            tested = caller if inside is caller.node else scope_of_call(test, write.tested_in, scope)  # type: ignore[arg-type]
            if _holds_here(test, tested):
                return  # this rank was to write it itself
            yield OffStack("tested", ast.unparse(test), test, tested, None if write.is_own else test)
            yield OffStack("written" if write.sure else "may_write", ast.unparse(write.path), write.call, home)
            if caller is not scope and isinstance(caller.call, ast.expr) and not write.is_own:
                yield OffStack("called", ast.unparse(caller.call), caller.call, caller)
            return
        yield OffStack("may_write", ast.unparse(write.path), write.call, home)


def _function_of(node: ast.expr, program: Program) -> ast.AST:
    return program.code.function(node) or program.tree


def _holds_here(test: ast.expr, scope: Scope) -> bool:
    """True if the test of the rank holds on this rank, as far as its frame or the launcher's variables tell."""
    value = scope.value(test)
    if value is True or value is False:
        return bool(value)
    words = ast.unparse(test)
    return os.environ.get("RANK") == "0" and ("== 0" in words or "not " in words or " != " not in words)


def _path_of(scope: Scope) -> ast.expr | None:
    """Return the path of the call that failed, as the program writes it."""
    call = scope.call
    if not isinstance(call, ast.Call) or (call.args and isinstance(call.args[0], ast.Starred)):
        return None
    if not call.args and isinstance(call.func, ast.Attribute):
        return call.func.value  # `path.read_text()`
    return call.args[0] if call.args else None


def _kept_from_last_pass(scope: Scope) -> Iterator[OffStack]:
    """Yield the name that carries a graph from one pass of the loop around `backward` into the next."""
    program, call = scope.program, scope.call
    if program is None or not isinstance(call, ast.Call):
        return
    loop = next((up for up in program.code.ancestors(call) if isinstance(up, ast.For | ast.While)), None)
    if loop is None:
        return
    summed = [n for n in _inside(loop) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)]
    owner = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    for each in summed:
        if isinstance(each.target, ast.Name) and each.target.id == owner and _is_first_in(owner, loop, each):
            yield OffStack("loop", owner, each, scope)
            return
    fresh = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)} if isinstance(loop, ast.For) else set()
    carried: list[tuple[str, ast.expr]] = []
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            bound = {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
            given = [*statement.value.args, *(k.value for k in statement.value.keywords)]
            carried += [(n.id, n) for n in given if isinstance(n, ast.Name) and n.id in bound - fresh]
        fresh |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if len(carried) == 1:
        name, node = carried[0]
        yield OffStack("loop", name, node, scope)


def _is_first_in(name: str, loop: ast.For | ast.While, summed: ast.AugAssign) -> bool:
    """True if no statement of the loop binds a name again before it is added to."""
    stored = [
        n
        for each in loop.body
        for n in ast.walk(each)
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n is not summed.target
    ]
    return not stored


def _inside(loop: ast.For | ast.While) -> Iterator[ast.AST]:
    for each in loop.body:
        yield from ast.walk(each)
