"""Finds the statement that last bound a name before a line, and what was put into its value since."""

from __future__ import annotations

import ast
import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dtdebug.account.expressions import how_of, position_in
from dtdebug.account.objects import MISSING, is_exactly, item
from dtdebug.account.scopes import Scope
from dtdebug.account.sources import cells_of, program_of
from dtdebug_taxonomy.model.account import How
from dtdebug_taxonomy.source.python.bindings import Binding, surely_before
from dtdebug_taxonomy.source.python.names import dotted_name

_LAST = 10**9
_PLAIN = (bool, int, float, str)
_GROWS = frozenset({"append", "extend", "add", "update", "insert", "setdefault", "appendleft"})


class Making(NamedTuple):
    """Statement or argument that gave a value."""

    how: How
    node: ast.AST
    """Its place in the program."""
    scope: Scope
    """Frame or function in which it stands."""
    value: ast.expr | None = None
    """Expression that was assigned or passed."""
    parts: tuple[ast.expr, ...] = ()
    """Expressions that the value was made of."""
    position: int | None = None
    """Number of the value among those that a loop or an assignment unpacks."""

    @property
    def line(self) -> int:
        """Its place in the program."""
        return getattr(self.node, "lineno", _LAST)


def is_current(node: ast.expr, made: Making, scope: Scope) -> bool:
    """True if a frame still has the value of a name: it was not bound again before the frame ended."""
    program = scope.program
    if not isinstance(node, ast.Name) or not scope.live or program is None:
        return True
    if made.scope.program is not None and made.scope.node is made.scope.program.tree:
        newer = itertools.takewhile(lambda cell: cell.file != made.scope.file, cells_around(scope, older=False))
        if any(list(last_bindings(node.id, cell.node or program.tree, cell)) for cell in newer):
            return False
    rows = program.bindings.get((scope.node or program.tree, node.id), ())
    first = made.line if made.scope.node is scope.node else 0
    return not any(first < getattr(row.node, "lineno", 0) <= scope.reached and row.how != "argument" for row in rows)


def cells_around(scope: Scope, *, older: bool = True) -> Iterator[Scope]:
    """Yield the cells of a notebook that ran before this one, the newest first; or all."""
    cells = cells_of(scope.world) if scope.live else []
    at = next((n for n, (file, _) in enumerate(cells) if file == scope.file), -1) if older else -1
    for file, text in cells[at + 1 :]:
        if file != scope.file:
            program = program_of(file, text)
            yield Scope(file, _LAST, "<module>", program=program, node=program.tree, live=True,
                        local=scope.world, world=scope.world)  # fmt: skip


def last_bindings(name: str, home: ast.AST, scope: Scope) -> Iterator[Making]:
    """Yield the last binding of a name before the line of a scope, and what was done to it since."""
    program = scope.program
    if program is None:
        return
    rows = [row for row in program.bindings.get((home, name), ()) if row.how in ("assign", "loop", "with", "other")]
    reaching = [row for row in rows if _reaches(row, scope) and not _is_other_value(name, row, scope, rows)]
    if not reaching and _in_loop(scope):  # the round before
        reaching = [row for row in rows if not _is_at(row.node, scope.line)]
    while reaching:
        row = reaching.pop()
        if (test := _test_against(row.node, scope)) is not None:
            yield Making("tested", test, scope, None, (test,))
            continue
        if isinstance(row.node, ast.AugAssign):
            yield Making("assigned", row.node, scope, row.node.value, (row.node.value,))
            continue
        yield from fillings(name, row, scope) or [making_of_binding(name, row, scope), *_insertions(name, row, scope)]
        return


def _is_other_value(name: str, row: Binding, scope: Scope, rows: Sequence[Binding]) -> bool:
    """True if the handler of an exception sets a constant, and the frame shows that the name has another value."""
    program = scope.program
    if program is None or not isinstance(row.value, ast.Constant) or len(rows) < 2 or not scope.live:
        return False
    later = (getattr(each.node, "lineno", 0) > scope.line or isinstance(each.node, ast.AugAssign) for each in rows)
    value = item(scope.local, name)
    if value is MISSING or any(later) or program.code.parent.get(row.node).__class__ is not ast.ExceptHandler:
        return False
    return type(value) is not type(row.value.value) or (is_exactly(value, _PLAIN) and value != row.value.value)


def _test_against(node: ast.AST, scope: Scope) -> ast.expr | None:
    """Return the test that kept a function which has returned from binding a name, if its values show that."""
    program = scope.program
    for up in program.code.ancestors(node) if program is not None and not scope.live and scope.local else ():
        if isinstance(up, ast.If) and up.lineno <= getattr(node, "lineno", 0) and not up.orelse:
            names = {n.id for n in ast.walk(up.test) if isinstance(n, ast.Name)}
            # an object may have changed since, arguments have not
            return up.test if "self" not in names and scope.value(up.test) is False else None
    return None


def _reaches(row: Binding, scope: Scope) -> bool:
    """True if a binding comes before the line, and not in a branch that excludes it."""
    node, line = row.node, scope.line
    if isinstance(node, ast.comprehension):
        inner = scope.inner
        return inner is not None and any(each is node for each in getattr(inner, "generators", ()))
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
    if isinstance(node, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith | ast.NamedExpr):
        return first <= line
    if first >= line or last >= line:
        return False
    program = scope.program
    if program is None or not isinstance(scope.call, ast.AST) or scope.call not in program.code.parent:
        return True
    return surely_before(program.code, node, scope.call) is not None


def _is_at(node: ast.AST, line: int) -> bool:
    return getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)


def _in_loop(scope: Scope) -> bool:
    if scope.program is None or not isinstance(scope.call, ast.AST):
        return False
    up = scope.program.code.ancestors(scope.call)
    return any(isinstance(each, ast.For | ast.While | ast.AsyncFor) for each in up)


def making_of_binding(name: str, row: Binding, scope: Scope) -> Making:
    """Return what a binding made the value of a name of."""
    node = row.node
    value = row.value
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        where = node.target if isinstance(node, ast.comprehension) else node
        return Making("loop", where, scope, node.iter, (node.iter,), position_in(name, node.target))
    if isinstance(node, ast.With | ast.AsyncWith):
        parts = tuple(each.context_expr for each in node.items)
        return Making("called", node, scope, None, parts)
    if value is None and isinstance(node, ast.Assign | ast.AnnAssign):
        value = node.value
    if value is None:
        return Making("assigned", node, scope)
    at = None
    if isinstance(node, ast.Assign) and not any(each is value for each in ast.walk(node)):  # a function returns it
        value, at = node.value, position_in(name, node.targets[0])
    how: How = "environment" if asks_environment(value, scope) else how_of(value)
    return Making(how, node, scope, value, (value,), at)


def asks_environment(value: ast.expr, scope: Scope) -> bool:
    """True for `env.get("X")` or `env["X"]`, converted or not, where `env` is another name of `os.environ`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
        value = value.args[0]
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get")) | ast.Subscript(value=ast.Name(id=name)):
            program = scope.program
            rows = program.bindings.get((scope.node or program.tree, name), ()) if program is not None else ()
            return len(rows) == 1 and dotted_name(rows[0].value).endswith("environ")
    return False


def _insertions(name: str, row: Binding, scope: Scope) -> Iterator[Making]:
    """Yield what was put into a container between its making and the line of a scope."""
    program, home = scope.program, scope.node
    if program is None:
        return
    code, first = program.code, getattr(row.node, "lineno", 0)
    for call in code.methods("update"):
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if first < call.lineno < scope.line and _base(owner) == name and code.scope(call) is (home or program.tree):
            yield Making("assigned", code.statement(call), scope, None, (*call.args, *(k.value for k in call.keywords)))


def _base(node: ast.expr | None) -> str:
    while isinstance(node, ast.Subscript):
        node = node.value
    return dotted_name(node) if node is not None else ""


def fillings(name: str, row: Binding, scope: Scope) -> list[Making]:
    """Return where an empty list, set or dictionary was filled."""
    value, program = row.value, scope.program
    empty = (
        isinstance(value, ast.List | ast.Dict | ast.Set)
        and not ast.dump(value).count("Constant(")
        and not any(True for _ in ast.iter_child_nodes(value) if isinstance(_, ast.expr))
    )
    empty = empty or (isinstance(value, ast.Call) and not value.args and not value.keywords
                      and dotted_name(value.func).rpartition(".")[2] in ("list", "dict", "set", "deque"))  # fmt: skip
    if not empty or program is None:
        return []
    code = program.code
    found: list[tuple[ast.AST, tuple[ast.expr, ...]]] = []
    home = scope.node or program.tree
    for call in code.nodes(ast.Call):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in _GROWS and dotted_name(func.value) == name:
            found.append((call, (*call.args, *(k.value for k in call.keywords))))
    for assign in code.nodes(ast.Assign):
        items = [t for t in assign.targets if isinstance(t, ast.Subscript) and dotted_name(t.value) == name]
        found.extend((assign, (target.slice, assign.value)) for target in items)
    for node, parts in found:
        where = code.scope(node)
        if where is home and getattr(node, "lineno", 0) <= getattr(row.node, "lineno", 0):
            continue
        if where is not home and not (name.startswith("self.") and code.class_of(where) is code.class_of(home)):
            continue
        loops = [each.iter for each in code.ancestors(node) if isinstance(each, ast.For)]
        inside = [each for each in loops if code.scope(each) is where]
        if where is not home:
            last = getattr(where, "end_lineno", 0) + 1
            scope = dataclasses.replace(scope, node=where, line=last, function=getattr(where, "name", ""), bound=None)
        return [Making("assigned", code.statement(node), scope, None, (*inside, *parts))]
    return []
