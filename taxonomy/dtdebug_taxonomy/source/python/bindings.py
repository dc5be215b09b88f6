"""Bindings of the names of a program, and which of them always execute before a place."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dtdebug_taxonomy.source.python.calls import CallIndex
from dtdebug_taxonomy.source.python.names import dotted_name

_BRANCHES = ("body", "orelse", "finalbody", "handlers")
_MAY_BE_SKIPPED = (ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.ExceptHandler, ast.BoolOp, ast.match_case)


class Binding(NamedTuple):
    """Binding of a name or `self.attribute` to a value."""

    node: ast.AST
    """Statement, argument or import that binds it."""
    value: ast.expr | None
    """Expression that it is bound to; None if that is not one expression."""
    how: Literal["assign", "loop", "with", "argument", "import", "definition", "other"]


def bindings(code: CallIndex) -> dict[tuple[ast.AST, str], list[Binding]]:
    """Return (scope, name or dotted name) -> bindings in the order of the program.

    `self.x` belongs to the class, so that other methods see what one method sets.
    """
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
    order = code.order
    for rows in found.values():
        if len(rows) > 1:
            rows.sort(key=lambda b: order[b.node])
    return found


def _bound(code: CallIndex) -> Iterator[tuple[Binding, ast.expr]]:
    """Yield all bindings of a target, except definitions and arguments."""
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


def name_scope(code: CallIndex, node: ast.AST, name: str) -> ast.AST:
    """Return the scope of a name that is bound at a node."""
    if name.startswith(("self.", "cls.")):
        return code.class_of(node) or code.scope(node)
    scope = code.scope(node)
    return code.tree if (scope, name) in _of_module(code) else scope


def _of_module(code: CallIndex) -> set[tuple[ast.AST, str]]:
    """Return the names that functions declare `global`, with the function."""
    found: set[tuple[ast.AST, str]] | None = code.__dict__.get("_of_module")
    if found is None:
        declared = code.nodes(ast.Global)
        found = code.__dict__["_of_module"] = {(code.scope(d), name) for d in declared for name in d.names}
    return found


def _targets(code: CallIndex, target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Call):
            returned = code.returned_values(value)
            value = returned[0] if len(returned) == 1 else None
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) else []
        for number, element in enumerate(target.elts):
            yield from _targets(code, element, parts[number] if parts else None)
    elif isinstance(target, ast.Starred):
        yield from _targets(code, target.value, None)
    elif name := dotted_name(target):
        yield name, value


def _arguments(
    function: ast.FunctionDef | ast.AsyncFunctionDef, found: dict[tuple[ast.AST, str], list[Binding]]
) -> None:
    a = function.args
    for argument in (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))):
        found[function, argument.arg].append(Binding(argument, None, "argument"))


def surely_before(code: CallIndex, first: ast.AST, node: ast.AST) -> bool | None:
    """True if `first`, which precedes `node`, always runs before it; None if `node` does not run after `first`."""
    around = {id(a): a for a in (node, *code.ancestors(node))}
    inner: ast.AST = first
    sure = True
    for up in code.ancestors(first):
        if id(up) in around:
            return _meet(up, inner, node, code) if sure else (None if _meet(up, inner, node, code) is None else False)
        if isinstance(up, _MAY_BE_SKIPPED):
            sure = False
            if leaves(_block_of(up, inner)):
                return None
        inner = up
    return sure


def _meet(up: ast.AST, first: ast.AST, node: ast.AST, code: CallIndex) -> bool | None:
    """Return the same if the two paths meet in a statement: the branches of one `if` exclude each other."""
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
    if isinstance(up, ast.Match):
        return True if inner is first or up.subject in (first, inner) else None
    if isinstance(up, ast.Try):
        one, other = _branch(up, first), _branch(up, inner)
        return one == other or (one == "body" and other == "finalbody")
    return True


def leaves(block: list[ast.stmt]) -> bool:
    """True if the code after a block is not reached from it."""
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
