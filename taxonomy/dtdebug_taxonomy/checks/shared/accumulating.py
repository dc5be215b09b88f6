"""Gradient accumulation: loops whose optimizer steps only in some iterations, by a counter or through Accelerate."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from typing import TypeGuard

from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

ACCELERATOR = "accelerate.Accelerator"
_LOOPS = (ast.For, ast.While)
_SOON = 20
"""Maximum number of statements to inspect after a loop."""
_MICRO = re.compile(r"accum|micro", re.IGNORECASE)
COUNT = "gradient_accumulation_steps"


def loop_of(code: Code, node: ast.AST) -> ast.For | ast.While | None:
    """Return the innermost loop around a node."""
    return next((a for a in code.ancestors(node) if isinstance(a, _LOOPS)), None)


def steps(code: Code) -> Iterator[ast.Call]:
    """Yield the calls that step an optimizer, also through a scaler or engine."""
    return (call for call in code.methods("step") if _is_step(call))


def _is_step(call: ast.expr) -> TypeGuard[ast.Call]:
    """True if an expression calls `step` of an optimizer or scaler."""
    if not isinstance(call, ast.Call):
        return False
    owner, _, last = dotted_name(call.func).lower().rpartition(".")
    return last == "step" and ("opt" in owner or "scaler" in owner)


def counts(code: Code, test: ast.expr) -> bool:
    """True if a condition holds only in every n-th iteration."""
    tests = code.values(test) if dotted_name(test) else [test]
    return any(isinstance(b.op, ast.Mod) for t in tests if t is not None for b in code.inside(t, ast.BinOp))


def is_periodic(code: Code, node: ast.AST, loop: ast.AST) -> bool:
    """True if a node is reached only in every n-th iteration of its loop."""
    for up in code.ancestors(node):
        if up is loop:
            return False
        if isinstance(up, ast.If) and counts(code, up.test):
            return True
    return False


def stepped_after(code: Code, loop: ast.AST) -> ast.Call | None:
    """Return the optimizer step that follows a loop over micro-steps."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call) or code.name(loop.iter.func) != "range":
        return None
    if not _MICRO.search(code.source_of(loop.iter)):
        return None
    block = code.block(loop)
    after = islice(block, block.index(loop) + 1, block.index(loop) + 1 + _SOON)
    return next((s.value for s in after if isinstance(s, ast.Expr) and _is_step(s.value)), None)


def rare_step(code: Code, loop: ast.AST, backward: ast.Call) -> ast.Call | None:
    """Return a step that runs only in some of the iterations of this loop that reach the backward pass."""
    here = set(code.ancestors(backward))
    by_loop: dict[ast.AST | None, list[ast.Call]] | None = code.__dict__.get("_steps_by_loop")
    if by_loop is None:
        by_loop = code.__dict__["_steps_by_loop"] = defaultdict(list)
        for step in steps(code):
            by_loop[loop_of(code, step)].append(step)
    for step in by_loop.get(loop, ()):
        inner: ast.AST = step
        counted = False
        for up in code.ancestors(step):
            if up is loop:
                break
            if isinstance(up, ast.If) and up in here:
                if (inner in up.body) is not any(s in here for s in up.body):
                    counted = False  # in the other branch: not in iterations with this backward pass
                    break
            elif isinstance(up, ast.If) and counts(code, up.test):
                counted = True
            inner = up
        if counted:
            return step
    return None


def optimizer_name(step: ast.Call) -> str:
    """Return the name of the optimizer that a call steps: `optimizer.step()`, `scaler.step(optimizer)`."""
    owner = dotted_name(step.func).rpartition(".")[0]
    return dotted_name(step.args[0]) if step.args and "scaler" in owner.lower() else owner


def accumulation_steps(code: Code) -> ast.expr | None:
    """Return the accumulation steps passed to the file's only Accelerator; None if absent or 1."""
    made = code.calls(ACCELERATOR)
    number = code.argument(made[0], COUNT) if len(made) == 1 else None
    return None if number is None or code.constant(number) == 1 else number


def accumulate_blocks(code: Code) -> Iterator[ast.With]:
    """Yield the `with accelerator.accumulate(model):` blocks."""
    for block in code.nodes(ast.With):
        if any(getattr(getattr(i.context_expr, "func", None), "attr", "") == "accumulate" for i in block.items):
            yield block
