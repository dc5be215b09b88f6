"""Results of asynchronous communication calls that are used before their handle is waited for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.asynchronous import asynchronous
from dtdebug_taxonomy.checks.shared.fixing import statement_lines
from dtdebug_taxonomy.checks.shared.gradients import CLIPS, GRADIENT, NEAR, steps
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.knowledge.facts import torch_distributed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_WRITES = {
    *("all_reduce", "broadcast", "irecv", "all_gather_into_tensor", "all_gather_single", "all_to_all_single"),
    *("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single"),
}
"""Calls whose first argument receives the result."""
_WAITS = re.compile(r"wait|sync|barrier|future|result|stream|event|coalesc", re.IGNORECASE)
_READS = {
    *("item", "tolist", "numpy", "cpu", "clone", "copy_", "div", "div_", "mul", "mul_", "add", "add_", "sub", "sub_"),
    *("sum", "mean", "max", "min", "norm", "abs", "sqrt", "zero_", "fill_", "float", "half", "clamp_"),
}
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.With, ast.AsyncWith, ast.FunctionDef, ast.ClassDef)


class _PendingCall(NamedTuple):
    """Pending call: the tensor that it writes, the name that holds its handle, and its loop."""

    tensor: str
    holder: str
    many: bool
    loop: str
    """Source of the iterable of the loop whose variable owns the tensor."""


def check(code: Code) -> Iterator[Hit]:
    """Report the use."""
    owners = {dotted_name(c.func.value) for c in code.methods("step") if isinstance(c.func, ast.Attribute)}
    alone = len({o for o in owners if "opt" in o.lower()}) == 1
    last: dict[tuple[ast.AST | None, str], int] = {}
    for call in asynchronous(code):
        begun = _pending_call(code, call)
        found = _first_use(code, code.statement(call), begun, alone=alone) if begun else None
        if begun is None or found is None:
            continue
        place, use = found
        last = last or _last_mentions(code)
        if last.get((code.function(use), begun.holder), 0) <= code.order[use]:
            continue  # nothing waits for it: DT402
        yield Hit(
            code.span(use),
            f"{begun.tensor} is used here before the {code.name(call.func).rsplit('.', 1)[-1]}() that writes into it "
            f"has been waited for through {begun.holder}: it holds the old value, the new one, or half of each.",
            _fix(code, place, begun.holder),
        )


def _pending_call(code: Code, call: ast.Call) -> _PendingCall | None:
    last = code.name(call.func).removeprefix(DIST)
    if last not in _WRITES:
        return None
    tensor = dotted_name(code.argument(call, torch_distributed().functions[last].parameters[0], 0)).removesuffix(
        ".data"
    )
    up = code.parent[call]
    if not tensor:
        return None
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        return _PendingCall(tensor, up.targets[0].id, many=False, loop=_loop(code, up))
    if isinstance(up, ast.ListComp) and up.elt is call and isinstance(home := code.parent[up], ast.Assign):
        if isinstance(home.targets[0], ast.Name):
            return _PendingCall(tensor, home.targets[0].id, many=True, loop=code.source_of(up.generators[0].iter))
    elif (holder := _appended_to(up)) and isinstance(code.parent[up], ast.Expr):
        return _PendingCall(tensor, holder, many=True, loop=_loop(code, up))
    return None


def _loop(code: Code, node: ast.AST) -> str:
    loop = next((a for a in code.ancestors(node) if isinstance(a, ast.For)), None)
    return code.source_of(loop.iter) if loop else ""


def _appended_to(node: ast.AST) -> str:
    """Return the list to which a call appends one item; "" if it does not append."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "append":
        return dotted_name(node.func.value) if isinstance(node.func.value, ast.Name) else ""
    return ""


def _first_use(code: Code, start: ast.stmt, begun: _PendingCall, *, alone: bool) -> tuple[ast.stmt, ast.AST] | None:
    """Return the first later statement that uses the tensor, with the use, if nothing before it may wait."""
    holders, many, here = {begun.holder}, begun.many, start
    risen = isinstance(start, ast.Assign) and many  # a list of calls: their loop has ended
    perhaps = False
    while True:
        block = code.block(here)
        at = block.index(here) + 1 if here in block else len(block)
        for statement in block[at : at + NEAR]:
            kept = isinstance(statement, ast.Expr) and _appended_to(statement.value)
            if kept and holders & _names(code, statement):
                holders.add(kept)
                many = True
                continue
            if isinstance(statement, _ENDS) or holders & _names(code, statement) or _may_wait(code, statement):
                return None
            if perhaps and isinstance(statement, ast.If):
                return None  # this may be the branch without a pending call
            use = _use(code, statement, begun, risen=risen, alone=alone)
            if use is not None:
                return statement, use
            if begun.tensor.split(".")[0] in _bound(statement) and not (risen and GRADIENT.search(begun.tensor)):
                return None
        up = code.parent[here]
        if isinstance(up, ast.For) and many and not risen:
            risen = True
        elif isinstance(up, ast.If):
            perhaps = True
        else:
            return None
        if len(block) - at > NEAR:
            return None
        here = up


def _names(code: Code, node: ast.AST) -> set[str]:
    return {n.id for n in code.inside(node, ast.Name)}


def _bound(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return {n.id for t in targets if t is not None for n in ast.walk(t) if isinstance(n, ast.Name)}


def _may_wait(code: Code, statement: ast.stmt) -> bool:
    called = (c.func for c in code.inside(statement, ast.Call))
    return any(_WAITS.search(getattr(f, "attr", "") or getattr(f, "id", "")) for f in called)


def _use(code: Code, statement: ast.stmt, begun: _PendingCall, *, risen: bool, alone: bool) -> ast.AST | None:
    """Return the node in a statement that reads or changes the tensor's values."""
    gradient = bool(GRADIENT.search(begun.tensor))
    if gradient and steps(code, statement):
        return statement if alone else None  # with several optimizers it may be another one's gradient
    if risen and not gradient:
        return None
    if gradient and any(c in code.calls(*CLIPS) for c in code.inside(statement, ast.Call)):
        return statement
    if risen and not (isinstance(statement, ast.For) and code.source_of(statement.iter) == begun.loop):
        return None
    scope = code.scope(statement)
    for node in code.inside(statement, ast.AugAssign, ast.BinOp, ast.Call, ast.FormattedValue):
        taken = {dotted_name(t).removesuffix(".data") for t in _used_values(code, node)}
        if begun.tensor in taken and code.scope(node) is scope:
            return node
    return None


def _used_values(code: Code, node: ast.AST) -> list[ast.expr]:
    """Return the values that an operation reads or changes."""
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if not isinstance(node, ast.Call):
        return []
    if isinstance(node.func, ast.Attribute) and node.func.attr in _READS:
        return [node.func.value]
    return list(node.args) if code.name(node.func) == "print" else []


def _last_mentions(code: Code) -> dict[tuple[ast.AST | None, str], int]:
    """Return the position of the last mention of each name, by function."""
    return {(code.function(n), n.id): code.order[n] for n in code.nodes(ast.Name)}


def _fix(code: Code, place: ast.stmt, holder: str) -> Fix | None:
    """Return a fix that moves a statement that only waits before the use."""
    block = code.block(place)
    wait = next((s for s in block[block.index(place) + 1 :] if holder in _names(code, s)), None)
    only = wait.body[0] if isinstance(wait, ast.For) and len(wait.body) == 1 and not wait.orelse else wait
    if wait is None or not isinstance(only, ast.Expr) or not isinstance(only.value, ast.Call):
        return None
    lines, before = statement_lines(code, wait), statement_lines(code, place)
    func = only.value.func
    if lines is None or before is None or not isinstance(func, ast.Attribute) or func.attr != "wait":
        return None
    if not code.cut(lines).endswith("\n"):
        return None
    return Fix("Wait for it first", (Edit(Span(before.start, before.start), code.cut(lines)), Edit(lines, "")))
