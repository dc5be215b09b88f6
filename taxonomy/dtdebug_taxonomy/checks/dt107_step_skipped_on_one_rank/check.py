"""Steps without a backward pass that one rank decides by its own data: a NaN in its loss, an empty batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.divergence.decisions import of_check
from dtdebug_taxonomy.checks.shared.fixing import has_group, indent_of, written_names
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name
from dtdebug_taxonomy.source.text import Span

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def check(code: Code) -> Iterator[Hit]:
    """Report the condition."""
    for found in of_check(code, "DT107"):
        condition = code.parent[found.node]
        yield Hit(
            code.span(found.node),
            "This rank alone decides to skip the step: the others wait for its gradients in the backward pass, "
            "or average them with those of another step.",
            _decide_together(code, condition) if isinstance(condition, ast.If) else None,
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
