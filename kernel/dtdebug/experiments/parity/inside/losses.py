"""Reads from the graph of a loss by which numbers it was multiplied, and over how many values it is a mean or sum."""

from __future__ import annotations

from typing import Any

_NODES = 48
_THROUGH = ("Squeeze", "Unsqueeze", "View", "Reshape", "ToCopy", "Alias", "Select", "Clone", "_DDPSink", "Expand")
_SUMS = ("Add", "Sub")
_REDUCED = ("NllLoss", "MseLoss", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss", "KlDiv")


def terms_of(loss: Any) -> list[dict[str, Any]]:
    """Return the terms of a loss: factors from the outside in, the operation below them, its kind and its count."""
    found: list[dict[str, Any]] = []
    todo: list[tuple[Any, tuple[tuple[str, float], ...]]] = [(loss.grad_fn, ())]
    seen = 0
    while todo and seen < _NODES:
        node, factors = todo.pop()
        seen += 1
        if node is None:
            continue
        name = type(node).__name__
        inner = [row[0] for row in node.next_functions if row[0] is not None]
        value = _scalar(node) if name.startswith(("DivBackward", "MulBackward")) else None
        if value is not None and inner:
            todo.append((inner[0], (*factors, ("div" if name.startswith("Div") else "mul", value))))
        elif name.startswith("NegBackward") and inner:
            todo.append((inner[0], (*factors, ("mul", -1.0))))
        elif name.startswith(_SUMS):
            todo += [(one, factors) for one in inner]
        elif name.startswith(_THROUGH) and inner:
            todo.append((inner[0], factors))
        elif name != "AccumulateGrad":
            kind, count = _reduction(node, name)
            found.append({"factors": [list(f) for f in factors], "op": name, "kind": kind, "count": count})
    return found


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
