"""Output lists of gathers whose entries are all the same tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import written_name
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_OUTPUTS = {
    DIST + "all_gather": ("tensor_list", 0),
    DIST + "gather": ("gather_list", 1),
    DIST + "all_to_all": ("output_tensor_list", 0),
}
_NEW = {f"torch.{n}{like}" for n in ("zeros", "ones", "empty", "full", "rand", "randn") for like in ("", "_like")} | {
    "torch.tensor",
    "torch.Tensor",
}
_NEW_METHODS = {"clone", "new_zeros", "new_empty", "new_ones", "new_full", "new_tensor"}
_KEEPS = {"to", "cuda", "cpu", "float", "double", "half", "long", "int", "bool", "bfloat16", "type", "contiguous"}


def check(code: Code) -> Iterator[Hit]:
    """Report the expression that makes such a list if a gather writes into it."""
    seen: set[ast.expr] = set()
    for call in code.calls(*_OUTPUTS):
        name = code.name(call.func)
        keyword, place = _OUTPUTS[name]
        given = code.argument(call, keyword, place)
        if given is None or _is_filled(code, given, call):
            continue
        for value in _values(code, given):
            if value in seen or not _repeats(value):
                continue
            seen.add(value)
            yield Hit(
                code.span(value),
                f"All entries of this list are one tensor: after {name.removeprefix(DIST)}() "
                "each of them holds the data of the rank that was written last.",
                _separate(code, value),
            )


def _values(code: Code, node: ast.expr | None, depth: int = 4) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from _values(code, node.body, depth)
        yield from _values(code, node.orelse, depth)
    elif node is not None and dotted_name(node) and depth:
        for value in code.values(node):
            if isinstance(value, ast.List) and not value.elts:
                yield from _appended_names(code, value, dotted_name(node))
            elif value is not node:
                yield from _values(code, value, depth - 1)
    elif isinstance(node, ast.Call) and dotted_name(node.func) == "list" and len(node.args) == 1:
        yield from _values(code, node.args[0], depth - 1)
    elif node is not None:
        yield node


def _appended_names(code: Code, empty: ast.List, name: str) -> Iterator[ast.expr]:
    """Yield the name from outside of the loop that a loop appends to an empty list."""
    for call in code.methods("append"):
        if dotted_name(call.func.value) != name or code.scope(call) is not code.scope(empty):  # type: ignore[attr-defined]
            continue
        loop = next((a for a in code.ancestors(call) if isinstance(a, ast.For)), None)
        given = call.args[0] if call.args else None
        if loop is None or not isinstance(given, ast.Name) or code.scope(loop) is not code.scope(call):
            continue
        bound = code.bound(given)
        if any(isinstance(a, ast.If) and a.orelse and _is_in(code, a, loop) for a in code.ancestors(call)):
            continue  # the other branch appends another one
        if bound and all(b.how == "assign" and not _is_in(code, b.node, loop) for b in bound):
            yield given


def _is_in(code: Code, node: ast.AST, loop: ast.For) -> bool:
    return any(a is loop for a in (node, *code.ancestors(node)))


def _repeats(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        made, count = _parts(node)
        once = isinstance(count, ast.Constant) and count.value == 1
        return made is not None and not once and not isinstance(made, ast.Constant | ast.List | ast.ListComp)
    if isinstance(node, ast.Name):  # appended repeatedly
        return True
    if isinstance(node, ast.Call):
        return (
            len(node.args) == 2
            and dotted_name(node.func).rsplit(".", 1)[-1] == "repeat"
            and not isinstance(node.args[0], ast.Constant)
        )
    if isinstance(node, ast.ListComp) and dotted_name(node.elt):
        bound = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        return dotted_name(node.elt).split(".", 1)[0] not in bound | {"None"}
    return False


def _parts(node: ast.BinOp) -> tuple[ast.expr | None, ast.expr]:
    """Return (made, count) of `[made] * count`, in either order."""
    for made, count in ((node.left, node.right), (node.right, node.left)):
        if isinstance(made, ast.List) and len(made.elts) == 1:
            return made.elts[0], count
    return None, node


def _is_filled(code: Code, given: ast.expr, call: ast.Call) -> bool:
    """True if a loop puts another tensor into each place of the list before the gather."""
    name = dotted_name(given)
    return bool(name) and any(
        isinstance(target, ast.Subscript)
        and dotted_name(target.value) == name
        and code.order[assign] < code.order[call]
        and any(isinstance(a, ast.For) for a in code.ancestors(assign))
        and code.function(assign) is code.function(call)
        for assign in code.nodes(ast.Assign)
        for target in assign.targets
    )


def _separate(code: Code, value: ast.expr) -> Fix | None:
    if not isinstance(value, ast.BinOp):
        return None
    made, count = _parts(value)
    if made is None:
        return None
    text, edits = code.source_of(made), tuple[Edit, ...]()
    if not _is_new(code, made):
        like, edits = written_name(code, "torch.empty_like")
        text = f"{like}({text})"
    edit = Edit(code.span(value), f"[{text} for _ in range({code.source_of(count)})]")
    return Fix("Make a tensor of its own for every rank", (*edits, edit))


def _is_new(code: Code, node: ast.expr) -> bool:
    while isinstance(node, ast.Call):
        if code.name(node.func) in _NEW:
            return True
        if not isinstance(node.func, ast.Attribute):
            return False
        if node.func.attr in _NEW_METHODS:
            return True
        if node.func.attr not in _KEEPS:
            return False
        node = node.func.value
    return False
