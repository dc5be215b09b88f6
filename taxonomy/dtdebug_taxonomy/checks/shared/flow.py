"""Data flow within one function: from a forward pass to the backward pass."""

from __future__ import annotations

import ast

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS, SCOPES

NO_GRAD = {"torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.autograd.no_grad"}
_CUTS = {"detach", "item", "tolist", "numpy", "argmax"}


def without_grad(code: Code, node: ast.AST) -> bool:
    """True if a node runs without gradients, by `with torch.no_grad():` or a decorator."""
    for up in code.ancestors(node):
        if isinstance(up, ast.With | ast.AsyncWith):
            if any(isinstance(i.context_expr, ast.Call) and _no_grad(code, i.context_expr) for i in up.items):
                return True
        elif isinstance(up, FUNCTIONS) and any(_no_grad(code, d) for d in up.decorator_list):
            return True
    return False


def _no_grad(code: Code, node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return code.name(called) in NO_GRAD or dotted_name(called).rsplit(".", 1)[-1] in {"no_grad", "inference_mode"}


def backwards(code: Code, scope: ast.AST) -> list[tuple[ast.Call, ast.expr]]:
    """Return the backward passes in a function or module as (call, loss)."""
    found: list[tuple[ast.Call, ast.expr]] = []
    for call in code.methods("backward"):
        if code.scope(call) is not scope or not isinstance(call.func, ast.Attribute):
            continue
        found.append((call, call.args[0] if call.args else call.func.value))
    return found


def reaches_backward(code: Code, source: ast.expr) -> bool:
    """True if the result of an expression reaches a backward pass of the same function."""
    scope = code.scope(source)
    losses = backwards(code, scope)
    if not losses:
        return False
    if any(source in set(ast.walk(loss)) or _is_in_receiver(call, source) for call, loss in losses):
        return True
    names = _bound_by(code, source)
    for statement in _statements(code, scope, code.statement(source)):
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) or value is None:
            continue
        if _uses(value, names):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names |= {n for t in targets for n in _names(t)}
    return any(code.order[call] > code.order[source] and _uses(loss, names) for call, loss in losses)


def _is_in_receiver(call: ast.Call, source: ast.expr) -> bool:
    return isinstance(call.func, ast.Attribute) and source in set(ast.walk(call.func.value))


def _bound_by(code: Code, source: ast.expr) -> set[str]:
    statement = code.statement(source)
    value = getattr(statement, "value", None)
    if not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) or value is None:
        return set()
    for up in code.ancestors(source):
        if up is statement:
            break
        if isinstance(up, ast.Attribute) and up.attr in _CUTS:
            return set()
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {n for t in targets for n in _names(t)}


def _statements(code: Code, scope: ast.AST, after: ast.stmt) -> list[ast.stmt]:
    found: list[ast.stmt] = [
        s
        for kind in (ast.Assign, ast.AugAssign, ast.AnnAssign)
        for s in code.nodes(kind)
        if code.scope(s) is scope and code.order[s] > code.order[after]
    ]
    return sorted(found, key=code.order.__getitem__)


def _names(target: ast.expr) -> set[str]:
    if isinstance(target, ast.Tuple | ast.List):
        return {n for e in target.elts for n in _names(e)}
    if isinstance(target, ast.Subscript | ast.Starred):
        return _names(target.value)
    name = dotted_name(target)
    return {name} if name else set()


def _uses(value: ast.expr, names: set[str]) -> bool:
    """True if an expression is computed from one of these names without detaching gradients."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _CUTS:
        return False
    if isinstance(value, ast.Attribute) and value.attr in {"data", "shape", "device", "dtype"}:
        return False
    if dotted_name(value) and (dotted_name(value) in names or dotted_name(value).split(".", 1)[0] in names):
        return True
    return any(_uses(child, names) for child in _expressions(value))


def _expressions(value: ast.AST) -> list[ast.expr]:
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(value):
        if isinstance(child, ast.expr):
            found.append(child)
        elif isinstance(child, ast.keyword):
            found.append(child.value)
    return found


def is_never_run(code: Code, node: ast.AST) -> bool:
    """True if a place is under a condition that every call in this file makes false: `if distributed:`."""
    inner = node
    for up in code.ancestors(node):
        if isinstance(up, SCOPES) or code.role == "library":
            return False
        if isinstance(up, ast.If) and inner in up.body and dotted_name(up.test):
            given = [b.value if isinstance(b.node, ast.arg) else None for b in code.bound(up.test)]
            if given and all(isinstance(v, ast.Constant) and not v.value for v in given):
                return True
        inner = up
    return False
