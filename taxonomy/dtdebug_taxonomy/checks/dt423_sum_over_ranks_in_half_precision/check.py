"""Sums over the ranks of tensors that were converted to float16 and not divided."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import inf

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_SUMS = tuple(f"{DIST}{name}" for name in ("all_reduce", "reduce", "reduce_scatter_tensor"))
_HALF = {"torch.float16", "torch.half"}
_DIVIDES = ("div", "div_", "mul", "mul_", "true_divide")


def check(code: Code) -> Iterator[Hit]:
    """Report the call that sums."""
    calls = code.calls(*_SUMS)
    smaller = _made_smaller(code) if calls else {}
    for call in calls:
        op = code.argument(call, "op", 1 if code.name(call.func).endswith("all_reduce") else 2)
        tensor = call.args[0] if call.args else code.argument(call, "tensor", 0)
        if tensor is None or (op is not None and dotted_name(op).rpartition(".")[2] != "SUM"):
            continue
        made = [source for v in code.values(tensor) if (source := _made_half(code, v)) is not None]
        names = {_plain(t) for t in (tensor, *made)}
        divided = any(smaller.get(name, inf) < code.order[call] for name in names)
        if made and len(made) == len(code.values(tensor)) and not divided:
            yield Hit(
                code.span(call),
                "This sum over the ranks is made in float16, which ends at 65504: each rank's values fit, their sum "
                "is inf. Divide by the number of ranks first, or sum in float32 or bfloat16.",
            )


def _made_half(code: Code, value: ast.expr | None) -> ast.expr | None:
    """Return `x` of `x.half()` or `x.to(torch.float16)` if it is one of the program's tensors, else None."""
    if (
        not isinstance(value, ast.Call)
        or not isinstance(value.func, ast.Attribute)
        or not dotted_name(value.func.value)
    ):
        return None
    given = (*value.args, *(k.value for k in value.keywords if k.arg == "dtype"))
    whole = value.func.attr == "half" and not value.args
    cast = value.func.attr in {"to", "type"} and any(code.name(a) in _HALF for a in given)
    return value.func.value if whole or cast else None


def _made_smaller(code: Code) -> dict[str, int]:
    """Return name -> position at which it is first divided or scaled: `x.div_(world)`, `x /= world`."""
    found: dict[str, int] = {}
    changed = [(c.func.value, c) for c in code.methods(*_DIVIDES)]  # type: ignore[attr-defined]
    for target, node in (*changed, *((a.target, a) for a in code.nodes(ast.AugAssign))):
        found[_plain(target)] = min(code.order[node], found.get(_plain(target), code.order[node]))
    return found


def _plain(tensor: ast.expr) -> str:
    return dotted_name(tensor).removesuffix(".data")
