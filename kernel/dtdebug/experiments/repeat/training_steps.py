"""Tells steps of training from those that only set up state, or that are part of another optimizer's step."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Begins = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Called with an optimizer and the arguments of its step; may return other arguments."""
Ends = Callable[[Any], None]


class TrainingSteps:
    """Observer of the outermost steps of optimizers.

    Before a distributed checkpoint is read or written, torch steps a new optimizer once with gradients of zero, so that
    it has a state to fill. Such a step has no gradient but zero, and finds no state.
    """

    def __init__(self, begins: Begins, ends: Ends, has_gradient: Callable[[Any], bool] | None = None) -> None:
        self._begins, self._ends = begins, ends
        self._has_gradient = has_gradient or _has_gradient
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()
        self._inside: list[Any] = []

    def hook(self, optimizers: Any) -> None:
        """Observe all steps from now on, given the module `torch.optim.optimizer`."""
        optimizers.register_optimizer_step_pre_hook(self.begin)
        optimizers.register_optimizer_step_post_hook(self.end)

    def begin(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Handle the beginning of a step; return what the observer does."""
        if any(one is optimizer for one in self._inside):  # its last step raised an exception
            self._inside.clear()
        if not self._inside and self._is_setup(optimizer, args, kwargs):
            return None
        self._inside.append(optimizer)
        return self._begins(optimizer, args, kwargs) if len(self._inside) == 1 else None

    def end(self, optimizer: Any, _args: Any = (), _kwargs: Any = None) -> None:
        """Handle the end of a step."""
        place = next((i for i, one in enumerate(self._inside) if one is optimizer), None)
        if place is None:
            return
        del self._inside[place:]
        if not self._inside:
            self._ends(optimizer)

    def _is_setup(self, optimizer: Any, args: Any, kwargs: Any) -> bool:
        if optimizer in self._trained:
            return False
        computes = any(callable(one) for one in (*args[1:], *kwargs.values()))  # a closure makes the gradients
        with suppress(Exception):  # a gradient without values, as on the meta device
            if not computes and not optimizer.state and not self._has_gradient(optimizer):
                return True
        self._trained.add(optimizer)
        return False


def _has_gradient(optimizer: Any) -> bool:
    cuda: Any = sys.modules.get("torch.cuda")
    if cuda is not None and getattr(cuda, "is_initialized", bool)() and cuda.is_current_stream_capturing():
        return True  # reading a value would break the capture
    gradients = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
    return any(bool((getattr(g, "_local_tensor", g) != 0).any()) for g in gradients)
