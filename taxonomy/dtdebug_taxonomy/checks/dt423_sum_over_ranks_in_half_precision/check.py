"""Sums over the ranks of tensors that were made float16 for it, undivided."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.names import DIST
from dtdebug_taxonomy.source.names import dotted
from dtdebug_taxonomy.source.python import Code

_SUMS = tuple(f"{DIST}{name}" for name in ("all_reduce", "reduce", "reduce_scatter_tensor"))
_HALF = {"torch.float16", "torch.half"}
_DIVIDES = ("div", "div_", "mul", "mul_", "true_divide")


def check(code: Code) -> Iterator[Hit]:
    """Reports the call that sums."""
    for call in code.calls(*_SUMS):
        op = code.argument(call, "op", 1 if code.name(call.func).endswith("all_reduce") else 2)
        tensor = call.args[0] if call.args else code.argument(call, "tensor", 0)
        if tensor is None or (op is not None and dotted(op).rpartition(".")[2] != "SUM"):
            continue
        values = [v for v in code.values(tensor) if v is not None]
        if values and all(_is_half(code, v) for v in values) and not _divided(code, tensor, call):
            yield Hit(
                code.span(call),
                "This sum over the ranks is made in float16, which ends at 65504: each rank's values fit, their sum "
                "is inf. Divide by the number of ranks first, or sum in float32 or bfloat16.",
            )


def _is_half(code: Code, value: ast.expr) -> bool:
    """`x.half()`, `x.to(torch.float16)`: nothing else is done to it."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr == "half":
        return not value.args
    given = (*value.args, *(k.value for k in value.keywords if k.arg == "dtype"))
    return value.func.attr in {"to", "type"} and any(code.name(a) in _HALF for a in given)


def _divided(code: Code, tensor: ast.expr, call: ast.Call) -> bool:
    """Whether it is made smaller before: `x.div_(world)`, `x /= world`."""
    name = dotted(tensor)
    methods = (c for c in code.methods(*_DIVIDES) if dotted(c.func.value) == name)  # type: ignore[attr-defined]
    changed = (a for a in code.nodes(ast.AugAssign) if dotted(a.target) == name)
    return any(code.order[node] < code.order[call] for node in (*methods, *changed))
