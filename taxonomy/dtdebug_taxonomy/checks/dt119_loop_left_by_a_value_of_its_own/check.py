"""Loops of training that each rank leaves by a value of its own part of the data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import SAMPLER
from dtdebug_taxonomy.checks.stepping import agrees, together
from dtdebug_taxonomy.source.guards import guards
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_TAKEN_OUT = ("item", "tolist")
_SPLITS = re.compile(r"split_by_node|split_dataset_by_node|DistributedSampler|\.shard\(")
_DEEPEST = 6


def check(code: Code) -> Iterator[Hit]:
    """Reports the name by which the loop is left."""
    if code.role == "test" or not (code.calls(SAMPLER) or _SPLITS.search(code.text)):
        return
    known = guards(code)
    leaving = [c for c in code.nodes(ast.If) if isinstance(c.body[-1], ast.Break)]
    conditions = [c for c in leaving if not known.around(c, early=False) and not known.test(c.test)]
    loops = {a for t in (together(code) if conditions else ()) for a in code.ancestors(t) if isinstance(a, _LOOPS)}
    for condition in conditions:
        loop = next((a for a in code.ancestors(condition) if isinstance(a, _LOOPS)), None)
        if loop in loops and loop is not None and _is_own(code, condition.test, loop, _DEEPEST):
            yield Hit(
                code.span(condition.test),
                "Each rank decides this by a value of its own part of the data, so some leave the loop and the "
                "others wait for them in the next step.",
            )


def _is_own(code: Code, node: ast.expr, loop: ast.AST, left: int) -> bool:
    """Whether a value comes from what this rank alone has computed in a loop, as far as the names tell."""
    if not left or _communicates(code, node):
        return False
    if isinstance(node, ast.Call) and _takes_out(code, node, loop):
        return True
    if not isinstance(node, ast.Name):
        parts = (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr))
        return any(_is_own(code, part, loop, left) for part in parts)
    values: list[ast.expr] = []
    bound = code.bound(node)
    if any(isinstance(b.node, ast.AugAssign) for b in bound):
        bound = code.bindings.get((code.scope(node), node.id), bound)
    for binding in bound:
        if loop not in set(code.ancestors(binding.node)):
            continue
        value = binding.node.value if isinstance(binding.node, ast.AugAssign) else binding.value
        if isinstance(binding.node, ast.Assign) and value is None:
            value = binding.node.value  # one of several results
        if value is not None:
            values.append(value)
    values += _told(code, node, loop)
    if _is_sent(code, node.id, loop) or any(_communicates(code, v) for v in values):
        return False
    return any(v is not node and _is_own(code, v, loop, left - 1) for v in values)


def _told(code: Code, node: ast.Name, loop: ast.AST) -> list[ast.expr]:
    """What an object gets in a loop: `stopper(loss)` and `stopper.step(loss)` for `stopper`."""
    found: list[ast.expr] = []
    for call in code.inside(loop, ast.Call):
        func = call.func.value if isinstance(call.func, ast.Attribute) else call.func
        if isinstance(func, ast.Name) and func.id == node.id and code.order[call] < code.order[node]:
            found += call.args
    return found


def _takes_out(code: Code, call: ast.Call, loop: ast.AST) -> bool:
    """Whether a call gives a number of a tensor: `loss.item()`, or a function of this file that ends so."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _TAKEN_OUT:
        inner = call.func.value
        values = (v for v in code.values(inner) if v is not None)
        return not _is_sent(code, dotted(inner), loop) and not any(_communicates(code, v) for v in values)
    function = code.called(call)
    if function is None:
        return False
    return any(isinstance(c.func, ast.Attribute) and c.func.attr == "item" for c in code.inside(function, ast.Call))


def _communicates(code: Code, node: ast.AST) -> bool:
    return any(agrees(code, c) for c in code.inside(node, ast.Call))


def _is_sent(code: Code, name: str, loop: ast.AST) -> bool:
    """Whether a value, or what is made of it, is given to a call by which the ranks may agree."""
    names = {name} - {""}
    for assign in code.inside(loop, ast.Assign):
        if any(dotted(n) in names for n in code.inside(assign.value, ast.Name, ast.Attribute)):
            names |= {dotted(t) for t in assign.targets} - {""}
    return any(
        dotted(n) in names
        for c in code.inside(loop, ast.Call)
        if agrees(code, c)
        for a in (*c.args, *(k.value for k in c.keywords))
        for n in code.inside(a, ast.Name, ast.Attribute)
    )
