"""Tells optimizer steps that only set up state from those of training."""

from __future__ import annotations

import weakref
from typing import Any


class SetupSteps:
    """Memory of the optimizers that have trained.

    Before a distributed checkpoint is read or written, torch steps a new optimizer once with gradients of zero, so that
    it has a state to fill.
    """

    def __init__(self) -> None:
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()

    def is_setup(self, optimizer: Any, args: Any, kwargs: Any) -> bool:
        """True if a step that begins now has no gradient but zero, and the optimizer no state yet."""
        if optimizer in self._trained:
            return False
        computes = any(callable(one) for one in (*args[1:], *kwargs.values()))  # a closure makes the gradients
        if not computes and not optimizer.state and not _has_gradient(optimizer):
            return True
        self._trained.add(optimizer)
        return False


def _has_gradient(optimizer: Any) -> bool:
    gradients = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
    return any(bool((getattr(g, "_local_tensor", g) != 0).any()) for g in gradients)
