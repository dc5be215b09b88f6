"""Reads an optimizer, its gradients and its losses, and keeps its state between steps."""

from __future__ import annotations

import sys
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.models import WrappedModel
from dtdebug.experiments.invariants.inside.record_writer import json_number

_HYPER = ("lr", "weight_decay", "momentum", "betas", "eps", "nesterov", "amsgrad", "alpha", "maximize")
_MEANS = ("MeanBackward", "NllLossBackward", "MseLossBackward", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss")
_OPERATIONS = 6
"""Maximum last operations of a loss to read."""


class KnownOptimizer:
    """State of one optimizer between its steps."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.steps = 0
        self.left: Any = None
        """(parameter reference, sample of its gradient) in the last step."""
        self.cleared: bool | None = None
        """That gradient was cleared before another one was added; None until known."""
        self.backwards = 0
        self.pending: dict[str, Any] | None = None
        self.local: list[float | str] = []
        """Sample of the gradients after the last backward pass, if no wrapper averages them."""
        self.models: list[WrappedModel] = []
        """Models whose parameters it holds, as of the last inspected step."""

    def holds(self) -> bool:
        """True if the gradient that the last step used is unchanged."""
        parameter = self.left[0]() if self.left is not None else None
        if parameter is None or parameter.grad is None:
            return False
        return bool(fingerprints.sample([parameter.grad]) == self.left[1])

    def was_cleared(self) -> bool:
        """True if the gradient that the last step used was cleared, even if others had been added before."""
        parameter = self.left[0]() if self.left is not None else None
        return parameter is None or parameter.grad is None or not any(fingerprints.sample([parameter.grad]))


def membership() -> dict[str, Any]:
    """Return rank and world size, and whether the ranks can communicate."""
    module: Any = sys.modules.get("torch.distributed.distributed_c10d")
    other = any(name in sys.modules for name in ("horovod", "mpi4py", "bagua", "byteps"))
    speed = getattr(sys.modules.get("deepspeed.comm.comm"), "cdb", None)  # others import it to check for it
    other = other or speed is not None
    if module is None or not module.is_initialized():
        return {"initialized": False, "other": other}
    return {"initialized": True, "rank": module.get_rank(), "world": module.get_world_size(), "other": other}


def parameters_of(optimizer: Any) -> list[Any]:
    """Return all its parameters."""
    return [p for group in optimizer.param_groups for p in group.get("params", ())]


def gradients_of(optimizer: Any) -> list[Any]:
    """Return the gradients of its whole parameters, without shards."""
    return [
        p.grad
        for p in parameters_of(optimizer)
        if p.grad is not None and fingerprints.is_whole(p) and fingerprints.is_whole(p.grad)
    ]


def settings_of(group: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a group as plain numbers; a learning rate may be a tensor."""
    found: dict[str, Any] = {}
    for name in _HYPER:
        value = group.get(name)
        if value is None:
            continue
        rows = list(value) if isinstance(value, (tuple, list)) else [value]
        found[name] = [json_number(float(v)) for v in rows[:4]]
    return found


def ratio(before: list[float | str] | None, now: list[float | str]) -> float | None:
    """Return the common factor of the gradients between their reduction and the step, or None if they differ."""
    if not before or len(before) != len(now):
        return None
    pairs = [(b, n) for b, n in zip(before, now, strict=True) if isinstance(b, float) and isinstance(n, float) and b]
    ratios = [n / b for b, n in pairs]
    if len(ratios) < 2 or max(ratios) - min(ratios) > 1e-5 * abs(ratios[0]):
        return None
    return round(ratios[0], 7)


def divisors(node: Any) -> list[float]:
    """Return the numbers by which a loss was divided (or multiplied by their inverse), from its last operations."""
    found: list[float] = []
    for _ in range(_OPERATIONS):
        name = type(node).__name__
        other = getattr(node, "_saved_other", None)
        if not name.startswith(("DivBackward", "MulBackward")) or other is None or other.device.type != "cpu":
            break
        value = float(other.detach()) if other.numel() == 1 and not other.is_complex() else 0.0
        if value:
            found.append(value if name.startswith("Div") else 1 / value)
        node = node.next_functions[0][0]
    return [value for value in found if value > 1]


def is_mean(node: Any) -> bool:
    """True if the loss's last operation is a mean over the rank's samples."""
    name = type(node).__name__
    if not name.startswith(_MEANS):
        return False
    return getattr(node, "_saved_reduction", 1) == 1
