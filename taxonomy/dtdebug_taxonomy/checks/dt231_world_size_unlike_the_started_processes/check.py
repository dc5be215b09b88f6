"""World sizes that differ from the number of processes which the program starts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.checks.shared.spawning import SPAWN
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.known_values import KnownValues
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, Function

_PROCESSES = ("multiprocessing.Process", "torch.multiprocessing.Process")
_DEEPEST = 4
"""Maximum number of calls between the started function and the one that sets up the group."""


class _Start(NamedTuple):
    """A call that starts the processes of a job."""

    target: Function
    count: ast.expr
    """Expression of their number."""
    handed: tuple[ast.expr, ...]
    """Arguments after the number of the process."""


def check(code: Code) -> Iterator[Hit]:
    """Report the number of processes."""
    groups = [c for c in code.calls(INIT) if code.argument(c, "world_size") is not None]
    for start in _starts(code) if groups else ():
        count = _number(code, start.count)
        for group in groups if count is not None else ():
            size = _Followed(code, start).value(code.argument(group, "world_size"), code.function(group))
            rank = _Followed(code, start).value(code.argument(group, "rank"), code.function(group))
            number = _number(code, size)
            if rank is start.target.args.args[0] and isinstance(size, ast.expr) and number not in {None, count}:
                yield _hit(code, start, count, size, number)
                break


def _hit(code: Code, start: _Start, count: object, size: ast.expr, number: object) -> Hit:
    written = code.source_of(size)
    named = "" if written == str(number) else f" ({written})"
    waits = isinstance(count, int) and isinstance(number, int) and count < number
    ends = "all wait for ranks that nothing starts." if waits else "the last ranks are refused."
    bound = code.bound(size) if isinstance(size, ast.Name) else []
    name = written if bound and all(code.function(b.node) is None for b in bound) else ""
    edit = Edit(code.span(start.count), name)
    processes = "1 process is" if count == 1 else f"{count} processes are"
    return Hit(
        code.span(start.count),
        f"{processes} started, and the world size is {number}{named}: {ends}",
        Fix("Start as many processes as the world size", (edit,), safe=False) if name else None,
    )


def _starts(code: Code) -> Iterator[_Start]:
    for call in code.calls(*SPAWN):
        target = _function(code, code.argument(call, "fn", 0))
        count = code.argument(call, "nprocs", 2)
        if target is not None and count is not None and not code.has_unpacking(call):
            yield _Start(target, count, _elements(code.argument(call, "args", 1)))
    for call in {*code.methods("Process"), *code.calls(*_PROCESSES)}:
        target = _function(code, code.argument(call, "target", 1))
        handed = _elements(code.argument(call, "args", 3))
        loop = code.parent.get(call)
        head = loop.generators[0] if isinstance(loop, ast.ListComp) else code.parent.get(code.statement(call) or call)
        match head:
            case (
                ast.For(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=[count]))
                | ast.comprehension(target=ast.Name(id=turn), iter=ast.Call(func=ast.Name(id="range"), args=[count]))
            ) if target is not None and handed and isinstance(handed[0], ast.Name) and handed[0].id == turn:
                yield _Start(target, count, handed[1:])


def _elements(args: ast.expr | None) -> tuple[ast.expr, ...]:
    return tuple(args.elts) if isinstance(args, ast.Tuple | ast.List) else ()


def _function(code: Code, target: ast.expr | None) -> Function | None:
    bound = code.bound(target) if isinstance(target, ast.Name) else []
    found = [b.node for b in bound if isinstance(b.node, FUNCTIONS) and b.node.args.args]
    return found[-1] if len(found) == len(bound) and found else None


class _Followed:
    """Follows parameters of functions up to the call that starts the processes."""

    def __init__(self, code: Code, start: _Start) -> None:
        self._code, self._start = code, start

    def value(
        self, node: ast.expr | None, function: Function | None, depth: int = _DEEPEST
    ) -> ast.expr | ast.arg | None:
        """Return the expression that a parameter was given, or the first parameter of the started function.

        None where that is not one expression, or the started function does not call the one that it is in.
        """
        if node is None or function is None or depth == 0:
            return None
        names = [a.arg for a in function.args.args]
        at = names.index(node.id) if isinstance(node, ast.Name) and node.id in names else -1
        if function is self._start.target:
            if at == 0:
                return function.args.args[0]
            handed = self._start.handed
            return node if at < 0 else handed[at - 1] if at <= len(handed) else None
        found = []
        for call in self._code.calls(function.name):
            given = self._code.argument(call, names[at], at) if at >= 0 else node
            caller = self._code.function(call)
            if at < 0 and self.value(ast.Constant(0), caller, depth - 1) is not None:
                found.append(node)
            elif at >= 0 and (value := self.value(given, caller, depth - 1)) is not None:
                found.append(value)
        return found[0] if len({ast.dump(f) for f in found}) == 1 else None


def _number(code: Code, node: ast.AST | None) -> int | None:
    value = KnownValues(code).value(node) if isinstance(node, ast.expr) else None
    plain = value.plain if value is not None else None
    return plain if isinstance(plain, int) and not isinstance(plain, bool) else None
