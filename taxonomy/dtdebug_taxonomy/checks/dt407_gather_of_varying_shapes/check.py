"""Gathers of tensors whose length depends on the rank's own data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from dtdebug_taxonomy.checks import Hit
from dtdebug_taxonomy.checks.shared.names import DIST
from dtdebug_taxonomy.source.python.code import Code
from dtdebug_taxonomy.source.python.names import dotted_name

_TENSORS = {DIST + "all_gather": 1, DIST + "gather": 0, DIST + "all_gather_into_tensor": 1}
_VARIES = {f"torch.{n}" for n in ("nonzero", "unique", "masked_select", "argwhere", "unique_consecutive")}
_VARIES_METHODS = {"nonzero", "unique", "masked_select", "argwhere"}
_KEEPS = {
    "to",
    "cuda",
    "cpu",
    "float",
    "long",
    "int",
    "contiguous",
    "detach",
    "clone",
    "unsqueeze",
    "flatten",
    "squeeze",
}
_SIZES = re.compile(
    r"^(?!world|n_?gpu|num_gpu)\w*?(sizes?|lengths?|shapes?|lens?|counts?|numels?|max_\w+)$", re.IGNORECASE
)


def check(code: Code) -> Iterator[Hit]:
    """Report the tensor."""
    for call in code.calls(*_TENSORS):
        name = code.name(call.func)
        keyword = "input_tensor" if name.endswith("into_tensor") else "tensor"
        given = code.argument(call, keyword, _TENSORS[name])
        if given is None or not _varies(code, given) or _has_agreed_sizes(code, call):
            continue
        yield Hit(
            code.span(given),
            f"The length of this tensor depends on the rank's own data: {name.removeprefix(DIST)}() needs the same "
            "shape on all ranks, else it fails, hangs, or mixes up the data.",
        )


def _varies(code: Code, node: ast.expr | None, depth: int = 4) -> bool:
    if node is None or depth == 0:
        return False
    if isinstance(node, ast.Call):
        if code.name(node.func) in _VARIES:
            return True
        if isinstance(node.func, ast.Attribute):
            if node.func.attr in _VARIES_METHODS:
                return True
            return node.func.attr in _KEEPS and _varies(code, node.func.value, depth - 1)
        return False
    if isinstance(node, ast.Subscript):
        return _is_mask(code, node.slice) or _varies(code, node.value, depth - 1)
    if dotted_name(node):
        values = [v for v in code.values(node) if v is not node]
        return bool(values) and all(_varies(code, v, depth - 1) for v in values)
    return False


def _is_mask(code: Code, index: ast.expr) -> bool:
    if isinstance(index, ast.Compare):
        return True
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
        return True
    if isinstance(index, ast.Name):
        return "mask" in index.id.lower() or any(isinstance(v, ast.Compare) for v in code.values(index))
    return False


def _has_agreed_sizes(code: Code, call: ast.Call) -> bool:
    """True if sizes were exchanged, or the tensor padded, before."""
    home = code.function(call)
    for other in code.calls(*_TENSORS, DIST + "all_reduce", DIST + "all_gather_object"):
        if code.function(other) is home and code.order[other] < code.order[call]:
            return True
    around = home or code.tree
    return any(
        re.search(r"pad|resize_|broadcast_to|expand", (dotted_name(c.func) or "").rsplit(".", 1)[-1])
        for c in code.inside(around, ast.Call)
    ) or any(_SIZES.search(n.id) and isinstance(n.ctx, ast.Store) for n in code.inside(around, ast.Name))
