"""Reads from the graph of a loss by which numbers it was multiplied, and over how many values it is a mean or sum."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from dtdebug_taxonomy.stacks.frames import is_library

_NODES = 48
_THROUGH = ("Squeeze", "Unsqueeze", "View", "Reshape", "ToCopy", "Alias", "Select", "Clone", "_DDPSink", "Expand")
_SUMS = ("Add", "Sub")
_EXCHANGES = ("AllReduce", "AllGather", "AlltoAll", "ReduceScatter", "_Reduce_Scatter")
_FRAME = re.compile(r' *File "(?P<file>[^"\n]+)", line (?P<line>\d+), in [^\n]*(?:\n +(?P<text>[^\n]{0,200}))?')
_REDUCED = ("NllLoss", "MseLoss", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss", "KlDiv")


def terms_of(loss: Any, summed: Collection[Any] = ()) -> list[dict[str, Any]]:
    """Return the terms of a loss: factors from the outside in, the operation below them, its kind and its count.

    `summed`: nodes whose results were summed over the ranks; of what depends on them, kind and count are not known.
    """
    return _walk(loss, summed)[0]


def is_scaled_into(loss: Any, node: Any) -> bool:
    """True if the loss is that node's result, multiplied by numbers, plus other terms."""
    return any(one is node for one in _walk(loss)[1])


def _walk(loss: Any, summed: Collection[Any] = ()) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the terms of a loss, and the nodes of its graph down to them."""
    found: list[dict[str, Any]] = []
    nodes = []
    todo: list[tuple[Any, tuple[tuple[str, float, Any], ...]]] = [(loss.grad_fn, ())]
    seen = 0
    while todo and seen < _NODES:
        node, factors = todo.pop()
        seen += 1
        if node is None:
            continue
        nodes.append(node)
        name = type(node).__name__
        inner = [row[0] for row in node.next_functions if row[0] is not None]
        value = _scalar(node) if name.startswith(("DivBackward", "MulBackward")) else None
        if value is not None and inner:
            todo.append((inner[0], (*factors, ("div" if name.startswith("Div") else "mul", value, node))))
        elif name.startswith("NegBackward") and inner:
            todo.append((inner[0], (*factors, ("mul", -1.0, node))))
        elif name.startswith(_SUMS):
            todo += [(one, factors) for one in inner]
        elif name.startswith(_THROUGH) and inner:
            todo.append((inner[0], factors))
        elif name != "AccumulateGrad":
            kind, count = ("", 0.0) if _crosses(node, summed) else _reduction(node, name)
            found.append({
                "factors": [[how, value] for how, value, _ in factors], "op": name, "kind": kind, "count": count,
                "made": [_made(node) for *_, node in factors], "at": _made(node),
            })  # fmt: skip
    return found, nodes


def _crosses(node: Any, summed: Collection[Any]) -> bool:
    """True if a node depends on values of other ranks, by the nodes near it."""
    todo, seen = [node], 0
    while todo and seen < _NODES:
        one = todo.pop(0)
        seen += 1
        if any(one is s for s in summed) or any(word in type(one).__name__ for word in _EXCHANGES):
            return True
        todo += [row[0] for row in one.next_functions if row[0] is not None]
    return False


def _made(node: Any) -> dict[str, Any]:
    """Return the user's line that led to an operation, and the operation's own; {} if torch kept no traceback."""
    rows = [m for text in node.metadata.get("traceback_", ()) if (m := _FRAME.match(text))]
    user = next((m for m in reversed(rows) if not is_library(m["file"]) and "/dtdebug/" not in m["file"]), None)
    own = next((m for m in reversed(rows) if "/torch/" not in m["file"]), None)
    if user is None or own is None:
        return {}
    return {
        "file": user["file"], "line": int(user["line"]),
        "own_file": own["file"], "own_line": int(own["line"]), "text": (own["text"] or "").strip(),
    }  # fmt: skip


def _scalar(node: Any) -> float | None:
    other = getattr(node, "_saved_other", None)
    if other is None or not hasattr(other, "numel") or other.numel() != 1 or other.is_complex():
        return None
    if len([row for row in node.next_functions if row[0] is not None]) != 1:
        return None  # the other factor has a gradient of its own
    return float(other.detach())


def _reduction(node: Any, name: str) -> tuple[str, float]:
    """Return mean or sum, and the number of values; "" if unknown."""
    if name.startswith("MeanBackward"):
        count = getattr(node, "_saved_self_sym_numel", 0)
        return "mean", float(count or _size(getattr(node, "_saved_self_sym_sizes", None)))
    if name.startswith("SumBackward"):
        return "sum", _size(getattr(node, "_saved_self_sym_sizes", None))
    if name.startswith(_REDUCED):
        kind = {1: "mean", 2: "sum"}.get(getattr(node, "_saved_reduction", 0), "")
        weight = getattr(node, "_saved_total_weight", None)
        if weight is not None and weight.numel() == 1 and kind:
            return kind, float(weight)
        own = getattr(node, "_saved_self", None)
        return kind, float(own.numel()) if own is not None else 0.0
    return "", 0.0


def _size(shape: Any) -> float:
    """Return the number of values of a shape, 0 if it is unknown."""
    count = 1.0 if shape is not None else 0.0
    for size in shape or ():
        count *= int(size)
    return count
