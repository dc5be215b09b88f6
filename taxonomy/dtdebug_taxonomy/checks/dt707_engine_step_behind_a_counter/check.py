"""Manual accumulation around an engine that accumulates itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.engines import is_engine, made_by_deepspeed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name


def check(code: Code) -> Iterator[Hit]:
    """Report `engine.step()` under a condition with a remainder that does not contain the backward pass."""
    if not code.imports_any("deepspeed"):
        return
    backward = {
        dotted_name(c.func.value) for c in code.methods("backward") if isinstance(c.func, ast.Attribute) and c.args
    }
    for call in code.methods("step"):
        if not isinstance(call.func, ast.Attribute):
            continue
        engine = call.func.value
        steps = dotted_name(engine) in backward and is_engine(code, engine)  # an engine takes the loss
        if not (steps or made_by_deepspeed(code, engine)):
            continue
        if not _behind_a_counter(code, call):
            continue
        yield Hit(
            code.span(call),
            "The engine counts micro steps in step() and updates the weights at the end of gradient_accumulation_steps "
            "itself: called behind a counter of its own it counts wrong.",
        )


def _behind_a_counter(code: Code, call: ast.Call) -> bool:
    """True under `if i % k == 0:` without the backward pass, or after `if i % k: continue`."""
    backwards = code.methods("backward")
    inner: ast.AST = call
    for up in code.ancestors(call):
        if isinstance(inner, ast.stmt):
            for earlier in code.block(inner):
                if earlier is inner:
                    break
                leaves = isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Continue)
                if leaves and isinstance(earlier, ast.If) and _counts(code, earlier.test):
                    between = (b for b in backwards if code.order[earlier] < code.order[b] < code.order[call])
                    return not any(between)
        if isinstance(up, ast.If) and inner is not up.test and _counts(code, up.test):
            return not any(up in code.ancestors(b) for b in backwards)
        if isinstance(up, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef):
            return False
        inner = up
    return False


def _counts(code: Code, test: ast.expr) -> bool:
    """True if a condition, or the value of a name in it, takes a remainder."""
    names = list(code.inside(test, ast.Name))
    values = [v for n in names for v in code.values(n) if isinstance(v, ast.expr) and v is not n]
    return any(isinstance(o.op, ast.Mod) for e in (test, *values) for o in code.inside(e, ast.BinOp))
