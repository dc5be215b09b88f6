"""Numbers of ranks that are computed from the devices of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Edit, Fix, Hit
from dtdebug_taxonomy.checks.shared.environment import reading
from dtdebug_taxonomy.checks.shared.fixing import environment_number
from dtdebug_taxonomy.checks.shared.names import INIT
from dtdebug_taxonomy.model.launch_variables import RANK
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_STARTS = {
    "torch.multiprocessing.spawn",
    "torch.multiprocessing.start_processes",
    "torch.multiprocessing.Process",
    "multiprocessing.Process",
}
_GLOBAL_FIGURE = re.compile(r"accum|batch", re.IGNORECASE)


def check(code: Code) -> Iterator[Hit]:
    """Report the number of ranks."""
    if code.calls(*_STARTS):
        return
    yield from _shares(code)
    for call in code.calls(INIT):
        size, rank = code.argument(call, "world_size", 3), code.argument(call, "rank", 4)
        if size is None or not code.is_made_by(size, "torch.cuda.device_count") or not _is_global(code, rank):
            continue
        text, edits = environment_number(code, "WORLD_SIZE")
        yield Hit(
            code.span(size),
            "The number of ranks is taken from the devices of this machine, while the rank is counted over all "
            "machines: on two machines the ranks of the second are out of range and the start fails or waits for ever.",
            Fix("Take the launcher's WORLD_SIZE", (Edit(code.span(size), text), *edits)),
        )


def _shares(code: Code) -> Iterator[Hit]:
    """Yield `accumulation_steps //= torch.cuda.device_count()` in a program whose ranks a launcher counts."""
    if not any(v.name in {"RANK", "WORLD_SIZE"} and not v.is_set for v in code.variables) or not code.calls(INIT):
        return
    for call in code.calls("torch.cuda.device_count"):
        up = code.parent.get(call)
        divides = isinstance(up, ast.AugAssign | ast.BinOp) and isinstance(up.op, ast.FloorDiv | ast.Div)
        if isinstance(up, ast.BinOp) and up.right is not call:
            divides = False
        what = up.target if isinstance(up, ast.AugAssign) else up.left if isinstance(up, ast.BinOp) else None
        if not divides or what is None or not _GLOBAL_FIGURE.search(dotted_name(what)):
            continue
        text, edits = environment_number(code, "WORLD_SIZE")
        yield Hit(
            code.span(call),
            f"{dotted_name(what)} is shared out over the devices of this machine, and a launcher may start more or"
            " fewer ranks than that: the batch is then another one than was asked for.",
            Fix("Take the launcher's WORLD_SIZE", (Edit(code.span(call), text), *edits)),
            "hint",
        )


def _is_global(code: Code, node: ast.expr | None) -> bool:
    """True if a rank comes from the launcher."""
    if node is None:
        return "RANK" in code.text
    for value in code.values(node) if dotted_name(node) else [node]:
        inner = value
        if isinstance(inner, ast.Call) and code.name(inner.func) == "int" and inner.args:
            inner = inner.args[0]
        read = reading(code, inner)
        if read is None or read.variable not in RANK:
            return False
    return True
