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
        made = [source for v in code.values(tensor) if (source := _made_half(code, v)) is not None]
        if made and len(made) == len(code.values(tensor)) and not _divided(code, [tensor, *made], call):
            yield Hit(
                code.span(call),
                "This sum over the ranks is made in float16, which ends at 65504: each rank's values fit, their sum "
                "is inf. Divide by the number of ranks first, or sum in float32 or bfloat16.",
            )


def _made_half(code: Code, value: ast.expr | None) -> ast.expr | None:
    """What `x.half()` or `x.to(torch.float16)` is made of, where it is a tensor of the program's; else None."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute) or not dotted(value.func.value):
        return None
    given = (*value.args, *(k.value for k in value.keywords if k.arg == "dtype"))
    whole = value.func.attr == "half" and not value.args
    cast = value.func.attr in {"to", "type"} and any(code.name(a) in _HALF for a in given)
    return value.func.value if whole or cast else None


def _divided(code: Code, tensors: list[ast.expr], call: ast.Call) -> bool:
    """Whether one of them is made smaller before: `x.div_(world)`, `x /= world`."""
    names = {dotted(t).removesuffix(".data") for t in tensors}
    methods = (c for c in code.methods(*_DIVIDES) if dotted(c.func.value).removesuffix(".data") in names)  # type: ignore[attr-defined]
    changed = (a for a in code.nodes(ast.AugAssign) if dotted(a.target).removesuffix(".data") in names)
    return any(code.order[node] < code.order[call] for node in (*methods, *changed))
