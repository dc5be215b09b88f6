"""Which values a name can have at a place: assignments of one file, followed without running it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dtdebug_taxonomy.source.names import dotted

if TYPE_CHECKING:
    from dtdebug_taxonomy.source.python import Binding, Code

_BRANCHES = ("body", "orelse", "finalbody", "handlers")


def bindings(code: Code) -> dict[tuple[ast.AST, str], list[Binding]]:
    """(scope, name or dotted name) -> bindings in the order of the program.

    `self.x` belongs to the class, so that what one method sets another one sees.
    """
    from dtdebug_taxonomy.source.python import Binding

    found: dict[tuple[ast.AST, str], list[Binding]] = defaultdict(list)

    for binding, target in _bound(code):
        for name, value in _targets(code, target, binding.value):
            found[name_scope(code, target, name), name].append(binding._replace(value=value))
    for function in code.all_functions:
        found[code.scope(function), function.name].append(Binding(function, None, "definition"))
        _arguments(function, found)
    for defined in code.nodes(ast.ClassDef):
        found[code.scope(defined), defined.name].append(Binding(defined, None, "definition"))
    for handler in code.nodes(ast.ExceptHandler):
        if handler.name:
            found[code.scope(handler), handler.name].append(Binding(handler, None, "other"))
    for rows in found.values():
        rows.sort(key=lambda b: code.order[b.node])
    return found


def _bound(code: Code) -> Iterator[tuple[Binding, ast.expr]]:
    """All that binds a target, except definitions and arguments."""
    from dtdebug_taxonomy.source.python import Binding

    for assign in code.nodes(ast.Assign):
        for target in assign.targets:
            yield Binding(assign, assign.value, "assign"), target
    for annotated in code.nodes(ast.AnnAssign):
        if annotated.value is not None:
            yield Binding(annotated, annotated.value, "assign"), annotated.target
    for walrus in code.nodes(ast.NamedExpr):
        yield Binding(walrus, walrus.value, "assign"), walrus.target
    for changed in code.nodes(ast.AugAssign):
        yield Binding(changed, None, "other"), changed.target
    loops = (code.nodes(ast.For), code.nodes(ast.AsyncFor), code.nodes(ast.comprehension))
    for loop in (node for kind in loops for node in kind):
        value = loop.iter if isinstance(loop.target, ast.Name) else None
        yield Binding(loop, value, "loop"), loop.target
    for item in code.nodes(ast.withitem):
        if item.optional_vars is not None:
            yield Binding(code.parent[item], item.context_expr, "with"), item.optional_vars


def name_scope(code: Code, node: ast.AST, name: str) -> ast.AST:
    """The scope that a name belongs to where it is bound."""
    if name.startswith(("self.", "cls.")):
        return code.class_of(node) or code.scope(node)
    scope = code.scope(node)
    return code.tree if (scope, name) in _of_module(code) else scope


def _of_module(code: Code) -> set[tuple[ast.AST, str]]:
    """The names that functions declare `global`, with the function."""
    found: set[tuple[ast.AST, str]] | None = code.__dict__.get("_of_module")
    if found is None:
        declared = code.nodes(ast.Global)
        found = code.__dict__["_of_module"] = {(code.scope(d), name) for d in declared for name in d.names}
    return found


def _targets(code: Code, target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Call):
            returned = code.returned(value)
            value = returned[0] if len(returned) == 1 else None
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else []
        for number, element in enumerate(target.elts):
            yield from _targets(code, element, parts[number] if parts else None)
    elif isinstance(target, ast.Starred):
        yield from _targets(code, target.value, None)
    elif name := dotted(target):
        yield name, value


def _arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, found: dict[tuple[ast.AST, str], list[Binding]]
) -> None:
    from dtdebug_taxonomy.source.python import Binding

    a = function.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
        found[function, argument.arg].append(Binding(argument, None, "argument"))


def given(code: Code, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> list[ast.expr | None]:
    """What the calls in this file pass for an argument; empty if there is no call in sight."""
    a = function.args
    positions = [x.arg for x in (*a.posonlyargs, *a.args)]
    if positions and positions[0] in {"self", "cls"} and isinstance(code.parent.get(function), ast.ClassDef):
        positions = positions[1:]
    place = positions.index(name) if name in positions else None
    owner = code.parent.get(function)
    if function.name == "__init__" and isinstance(owner, ast.ClassDef):
        from dtdebug_taxonomy.source.through import made_elsewhere

        calls = [] if made_elsewhere(code, owner) else code.calls(owner.name)
    else:
        calls = code.callers.get(function, [])
    return [code.argument(call, name, place) for call in calls]


def reaching(code: Code, node: ast.expr, name: str = "", depth: int = 4) -> list[Binding]:
    """The bindings that a name or dotted name can have where it, or the node, stands."""
    name = name or dotted(node)
    found = _written(code, node, name)
    if found or "." not in name or not depth:
        return found
    from dtdebug_taxonomy.source.through import through

    return through(code, node, name, depth - 1)


def _written(code: Code, node: ast.expr, name: str) -> list[Binding]:
    """The bindings of a dotted name as it is written."""
    from dtdebug_taxonomy.source.syntax import SCOPES

    if name.startswith(("self.", "cls.")):
        here = code.bindings.get((name_scope(code, node, name), name), [])
        mine = [b for b in here if code.function(b.node) is code.function(node)]
        return _before(code, mine, node) or here
    scopes = [s for s in (*code.ancestors(node), code.tree) if isinstance(s, SCOPES)]
    for depth, scope in enumerate(scopes):
        if isinstance(scope, ast.ClassDef) and depth:
            continue
        here = code.bindings.get((scope, name), [])
        if not here:
            continue
        found = (_before(code, here, node) or _around_again(code, here, node)) if scope is code.scope(node) else here
        result: list[Binding] = []
        for binding in found:
            if binding.how == "argument" and isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
                values = given(code, scope, name)
                result += [binding._replace(value=v, how="assign") for v in values if v is not None] or [binding]
                if None in values and len(values) > 1:
                    result.append(binding)
            else:
                result.append(binding)
        return result
    return []


def _before(code: Code, here: list[Binding], node: ast.AST) -> list[Binding]:
    """Of the bindings of one scope: the last that is surely passed on the way, and those after it that may be."""
    at = code.order[node]
    statement = code.statement(node)
    result: list[Binding] = []
    for binding in reversed(here):
        if code.order[binding.node] > at or binding.node is statement:
            continue
        passed = surely_before(code, binding.node, node)
        if passed is None:  # on another branch of the same decision
            continue
        result.append(binding)
        if passed:
            break
    return result[::-1]


def _around_again(code: Code, here: list[Binding], node: ast.AST) -> list[Binding]:
    """Bindings further down that a loop brings back to the node."""
    loops = {a for a in code.ancestors(node) if isinstance(a, ast.For | ast.AsyncFor | ast.While)}
    return [b for b in here if loops.intersection(code.ancestors(b.node))] if loops else []


def surely_before(code: Code, first: ast.AST, node: ast.AST) -> bool | None:
    """Whether `first`, which stands before `node`, is always run before it; None if then `node` is not run at all."""
    around = {id(a): a for a in (node, *code.ancestors(node))}
    inner: ast.AST = first
    sure = True
    for up in code.ancestors(first):
        if id(up) in around:
            return _meet(up, inner, node, code) if sure else (None if _meet(up, inner, node, code) is None else False)
        if isinstance(up, ast.If | ast.For | ast.While | ast.Try | ast.IfExp | ast.ExceptHandler | ast.BoolOp):
            sure = False
            if leaves(_block_of(up, inner)):
                return None
        inner = up
    return sure


def _meet(up: ast.AST, first: ast.AST, node: ast.AST, code: Code) -> bool | None:
    """The same where the two paths meet in a statement: other branches of one `if` exclude each other."""
    inner: ast.AST = node
    for a in code.ancestors(node):
        if a is up:
            break
        inner = a
    if isinstance(up, ast.If | ast.IfExp):
        one, other = _branch(up, first), _branch(up, inner)
        if "test" in (one, other) or one == other:
            return True
        return None
    if isinstance(up, ast.Try):
        one, other = _branch(up, first), _branch(up, inner)
        return one == other or (one == "body" and other == "finalbody")
    return True


def leaves(block: list[ast.stmt]) -> bool:
    """Whether what comes after a block is not reached from it."""
    return bool(block) and isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)


def _block_of(up: ast.AST, child: ast.AST) -> list[ast.stmt]:
    value = getattr(up, _branch(up, child), None)
    return value if isinstance(value, list) and not isinstance(value[0], ast.ExceptHandler) else []


def _branch(up: ast.AST, child: ast.AST) -> str:
    for field in ("test", *_BRANCHES):
        value = getattr(up, field, None)
        if value is child or (isinstance(value, list) and child in value):
            return field
    return ""
