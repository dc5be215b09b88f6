"""Steps without a backward pass that one rank decides by its own data: a NaN in its loss, an empty batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.fixing import has_group, indent_of, written_names
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.checks.shared.stepping import backwards, in_step, is_agreed
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.python.syntax import FUNCTIONS
from dtdebug_taxonomy.source.text import Span

_NOT_FINITE = re.compile(r"is_?(nan|inf|finite)|(has|any)_(\w+_)?(nan|inf)|(nan|inf)_or_")
_PARALLEL = re.compile(r"(?i)ddp|fsdp|dist|parallel|multi")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def check(code: Code) -> Iterator[Hit]:
    """Report the condition."""
    if not in_step(code):
        return
    seen: set[ast.If] = set()
    for backward in backwards(code):
        for condition in _conditions(code, backward):
            if condition in seen or not _is_local(code, condition) or _is_for_one(code, condition):
                continue
            seen.add(condition)
            yield Hit(
                code.span(condition.test),
                "This rank alone decides to skip the step: the others wait for its gradients in the backward pass, "
                "or average them with those of another step.",
                _decide_together(code, condition),
            )


def _decide_together(code: Code, condition: ast.If) -> Fix | None:
    """Return a fix after which all ranks skip the step if one does; None if no tensor tells the device."""
    if condition.orelse or not isinstance(condition.body[-1], ast.Continue):
        return None
    if not isinstance(code.parent[condition], _LOOPS) or not has_group(code):
        return None  # not all ranks may come to it
    if not code.source_of(condition).startswith("if") or "\n" in code.source_of(condition.test):
        return None
    device = next((d for c in code.inside(condition.test, ast.Call) if (d := _tensor(code, c)) and "\n" not in d), "")
    if not device or "torch" not in code.imports.values():
        return None
    reduce, maximum, imports = written_names(code, DIST + "all_reduce", DIST + "ReduceOp")
    torch = next(local for local, full in code.imports.items() if full == "torch")
    name = "skip" if not any(n.id == "skip" for n in code.nodes(ast.Name)) else "skip_step"
    start, indent = code.span(condition).start, indent_of(code, condition)
    made = f"{name} = {torch}.tensor(float({code.source_of(condition.test)}), device={device}.device)"
    lines = f"{made}\n{indent}{reduce}({name}, op={maximum}.MAX)\n{indent}"
    return Fix(
        "Skip the step on all ranks if one skips it",
        (*imports, Edit(Span(start, start), lines), Edit(code.span(condition.test), name)),
        safe=False,
    )


def _tensor(code: Code, call: ast.Call) -> str:
    """Return the tensor that a call asks, as written: `x` of `torch.isnan(x)`, `loss` of `loss.item()`."""
    if code.name(call.func) in {"torch.isnan", "torch.isinf", "torch.isfinite"} and call.args:
        return dotted_name(call.args[0])
    if isinstance(call.func, ast.Attribute) and call.func.attr in {"item", "isnan", "isinf", "isfinite"}:
        return dotted_name(call.func.value) if dotted_name(call.func.value) not in code.imports else ""
    return ""


def _conditions(code: Code, backward: ast.Call) -> Iterator[ast.If]:
    """Yield the `if`s of the innermost loop, or of a one-step function, that can skip a backward pass."""
    inner: ast.AST = backward
    found: list[ast.If] = []
    left: list[ast.If] = []
    for up in code.ancestors(backward):
        if isinstance(inner, ast.stmt):
            for earlier in code.block(inner):
                if earlier is inner:
                    break
                if isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Continue):
                    found.append(earlier)
                elif isinstance(earlier, ast.If) and isinstance(earlier.body[-1], ast.Return):
                    left.append(earlier)
        if isinstance(up, ast.If) and inner in up.body and not _steps(code, up.orelse):
            found.append(up)
        if isinstance(up, _LOOPS):
            yield from found
            return
        if isinstance(up, FUNCTIONS):
            yield from (*found, *left)
            return
        inner = up


def _steps(code: Code, block: list[ast.stmt]) -> bool:
    """True if a block has a backward pass, maybe in a function that it calls, or raises."""
    return any(
        isinstance(s, ast.Raise) or any("backward" in code.source_of(c.func) for c in code.inside(s, ast.Call))
        for s in block
    )


def _is_local(code: Code, condition: ast.If) -> bool:
    """True if a condition depends on this rank's data and the ranks have not agreed on it."""
    values = [v for n in code.inside(condition.test, ast.Name) for v in code.values(n) if v is not None]
    expressions = [condition.test, *values]
    if not any(_asks_finite(code, e) for e in expressions) and not _asks_data(code, condition):
        return False
    return not is_agreed(code, expressions, condition)


def _is_for_one(code: Code, condition: ast.If) -> bool:
    """True if the function has a variant for several ranks: `step_torch` and `step_torch_ddp`."""
    function = code.function(condition)
    stem = function.name if function else ""
    return bool(stem) and any(
        name.startswith(stem) and _PARALLEL.search(name[len(stem) :]) for name in code.functions if name != stem
    )


def _asks_finite(code: Code, node: ast.expr) -> bool:
    calls = code.inside(node, ast.Call)
    return any(_NOT_FINITE.search(getattr(c.func, "attr", "") or getattr(c.func, "id", "")) for c in calls)


def _asks_data(code: Code, condition: ast.If) -> bool:
    """True for `batch is None`, `len(batch) == 0`, `loss > 100` and `loss != loss`."""
    loop = next((a for a in code.ancestors(condition) if isinstance(a, ast.For)), None)
    items = {n.id for n in code.inside(loop.target, ast.Name)} if loop else set()
    for test in code.inside(condition.test, ast.Compare):
        left, op, right = test.left, test.ops[0], test.comparators[0]
        if isinstance(op, ast.Is) and isinstance(left, ast.Name) and left.id in items and _is(right, None):
            return True
        if isinstance(op, ast.Eq) and _is(right, 0) and isinstance(left, ast.Call) and _measures(left, items):
            return True
        of_loss = "loss" in dotted_name(left) or (isinstance(left, ast.Call) and "loss" in dotted_name(left.func))
        if of_loss and (
            isinstance(op, ast.Gt | ast.GtE) or (isinstance(op, ast.NotEq) and dotted_name(left) == dotted_name(right))
        ):
            return True
    return False


def _is(node: ast.expr, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value is value


def _measures(call: ast.Call, items: set[str]) -> bool:
    if dotted_name(call.func) == "len" and call.args:
        return dotted_name(call.args[0]) in items
    return isinstance(call.func, ast.Attribute) and call.func.attr == "numel" and dotted_name(call.func.value) in items
