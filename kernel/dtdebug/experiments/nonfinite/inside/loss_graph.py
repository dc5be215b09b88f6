"""Finds in the graph of a loss, before its backward pass frees it, where a value that is not finite arises."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from dtdebug.experiments.nonfinite.inside.trace import bad_rows, is_finite

_NODES = 256


def _log(node: Any) -> str:
    own = node._saved_self  # noqa: SLF001 - torch's name for it
    least = float(own.detach().min())
    if least > 0:
        return ""
    return f"the logarithm of {'0' if least == 0 else 'a negative number'}"


def _div(node: Any) -> str:
    other = getattr(node, "_saved_other", None)
    return "a division by 0" if other is not None and bool((other.detach() == 0).any()) else ""


def _sqrt(node: Any) -> str:
    return "the square root of a negative number" if not is_finite(node._saved_result) else ""  # noqa: SLF001


def _exp(node: Any) -> str:
    return "an exponential that overflows" if not is_finite(node._saved_result) else ""  # noqa: SLF001


def _pow(node: Any) -> str:
    own = node._saved_self.detach()  # noqa: SLF001
    exponent = getattr(node, "_saved_exponent", 1)
    power = float(exponent) if not hasattr(exponent, "numel") or exponent.numel() == 1 else 0.0
    if is_finite(own) and power > 1 and not is_finite(own.pow(power)):
        return f"a power that overflows: its largest argument is {float(own.abs().max()):.3g}"
    if power < 0 and bool((own == 0).any()):
        return "a negative power of 0"
    return "a broken power of a negative number" if power != int(power) and bool((own < 0).any()) else ""


def _mean(node: Any) -> str:
    return "a mean over no value" if getattr(node, "_saved_self_sym_numel", 1) == 0 else ""


def _nll(node: Any) -> str:
    weight = getattr(node, "_saved_total_weight", None)
    none = weight is not None and weight.numel() == 1 and float(weight) == 0 and node._saved_reduction == 1  # noqa: SLF001
    return "a mean over no target: all are ignored" if none else ""


_RULES: dict[str, Callable[[Any], str]] = {
    "LogBackward": _log, "Log2Backward": _log, "Log10Backward": _log, "DivBackward": _div, "SqrtBackward": _sqrt,
    "RsqrtBackward": lambda node: "an inverse root of 0" if not is_finite(node._saved_result) else "",  # noqa: SLF001
    "ReciprocalBackward": lambda node: "a division by 0" if not is_finite(node._saved_result) else "",  # noqa: SLF001
    "ExpBackward": _exp, "PowBackward": _pow, "MeanBackward": _mean, "NllLoss": _nll,
}  # fmt: skip


def origin_in_loss(loss: Any, outputs: Collection[int], batch: int) -> dict[str, Any]:
    """Return what is wrong in the loss's own operations, those nearest to the model's outputs first.

    `outputs`: sequence numbers of the nodes that made the outputs of the model.
    """
    order: list[Any] = []
    seen: set[Any] = set()
    todo: list[tuple[Any, bool]] = [(loss.grad_fn, False)]
    while todo and len(seen) < _NODES:
        node, left = todo.pop()
        if left:
            order.append(node)
            continue
        if node is None or node in seen or type(node).__name__ == "AccumulateGrad":
            continue
        if node._sequence_nr() in outputs:  # noqa: SLF001 - torch has no other name for it
            continue
        seen.add(node)
        todo.append((node, True))
        todo += [(row[0], False) for row in node.next_functions]
    for node in order:
        name = type(node).__name__
        rule = next((rule for start, rule in _RULES.items() if name.startswith(start)), None)
        try:
            what = rule(node) if rule is not None else ""
        except (AttributeError, RuntimeError, TypeError, ValueError):  # another release of torch saves less
            what = ""
        if what:
            own = getattr(node, "_saved_self", None)
            rows = _zero_rows(node, own, batch)
            return {"op": name.rstrip("0123456789").removesuffix("Backward").lower(), "what": what, "rows": rows}
    names = [type(node).__name__.rstrip("0123456789").removesuffix("Backward").lower() for node in order]
    return {"op": "", "what": "", "among": names[:8], "rows": []}


def _zero_rows(node: Any, own: Any, batch: int) -> list[int]:
    other = getattr(node, "_saved_other", None)
    for tensor, positive in ((own, True), (other, False)):
        if tensor is None or not hasattr(tensor, "ndim") or tensor.ndim < 1 or len(tensor) != batch:
            continue
        flat: Any = tensor.detach().reshape(batch, -1)
        bad: Any = flat <= 0 if positive else flat == 0
        rows = bad.any(dim=1).nonzero().flatten().tolist()
        if 0 < len(rows) < batch:
            return list(rows[:8])
    result = getattr(node, "_saved_result", None)
    return bad_rows(result, batch) if result is not None else []
