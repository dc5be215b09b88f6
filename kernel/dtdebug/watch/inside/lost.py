"""What gets lost on its way: weights that a load leaves out, gradients that end at a gathered tensor."""

from __future__ import annotations

import functools
import sys
import weakref
from types import ModuleType
from typing import Any

from dtdebug.watch.inside import values
from dtdebug.watch.inside.models import Models
from dtdebug.watch.inside.notes import Notes, guarded
from dtdebug.watch.inside.steps import Steps
from dtdebug_taxonomy.frames import is_library

GATHERING = frozenset(("all_gather", "all_gather_into_tensor"))
_NODES, _PLACES, _STEPS = 4096, 8, 3
"""Nodes of a graph that are gone through, places that are remembered, and steps after which it is said."""


class Gathered:
    """A call that gathers a tensor which has a graph: what it gives has none."""

    def __init__(self, call: str, site: int, step: int, parameters: list[Any]) -> None:
        self.call, self.site, self.step = call, site, step
        self.parameters = [weakref.ref(p) for p in parameters]
        self.bare = 0
        """Steps in which none of the parameters behind it had a gradient."""


class Lost:
    """Of this process."""

    def __init__(self, notes: Notes, models: Models, steps: Steps) -> None:
        self.notes, self._models, self._steps = notes, models, steps
        self._gathered: dict[int, Gathered] = {}

    def patch(self, module: ModuleType) -> None:
        """Wraps `torch.nn.Module.load_state_dict`."""
        kind = module.Module
        load = kind.load_state_dict

        @functools.wraps(load)
        def load_state_dict(model: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            result = load(model, state_dict, *args, **kwargs)
            self._loads(model, state_dict, result, sys._getframe(1))  # noqa: SLF001 - documented
            return result

        kind.load_state_dict = load_state_dict

    @guarded
    def _loads(self, model: Any, state: Any, result: Any, frame: Any) -> None:
        given, left = len(state), len(getattr(result, "unexpected_keys", ()))
        if given > left:
            self._models.loaded.add(model)
        elif given and next(model.parameters(), None) is not None:
            while frame is not None and is_library(frame.f_code.co_filename):
                frame = frame.f_back
            first, site = str(next(iter(state)))[:200], self.notes.site(frame)
            self.notes.put("unloaded", given=given, first=first, s=self._steps.now, site=site)

    def gathers(self, call: str, tensors: list[Any], frame: Any) -> None:
        """The program gathers tensors; once for each place."""
        site = self.notes.site(frame)
        if not sys.modules["torch"].is_grad_enabled() or site in self._gathered or len(self._gathered) >= _PLACES:
            return
        behind = [p for tensor in tensors if tensor.grad_fn is not None for p in _parameters(_begin(tensor))]
        if behind:
            self._gathered[site] = Gathered(call, site, self._steps.now, behind)

    def before_step(self, optimizer: Any) -> None:
        """Gradients are complete: do those parameters have any?"""
        if not self._gathered:
            return
        held = {id(p) for group in optimizer.param_groups for p in group.get("params", ())}
        for place in list(self._gathered.values()):
            alive = [p for ref in place.parameters if (p := ref()) is not None]
            mine = [p for p in alive if id(p) in held]
            if not mine or place.bare >= _STEPS:
                continue
            if any(_has_gradient(p) for p in alive):
                place.bare = _STEPS  # it reaches them, by this way or another
                continue
            place.bare += 1
            if place.bare == _STEPS:
                self.notes.put("gathered", call=place.call, s=place.step, n=len(alive), site=place.site)


def _has_gradient(parameter: Any) -> bool:
    grad = parameter.grad
    return grad is not None and (not values.is_whole(grad) or bool(grad.count_nonzero()))


def _begin(tensor: Any) -> Any:
    """The node that made the tensor; below that of DDP, which all outputs of a model share."""
    node = tensor.grad_fn
    if type(node).__name__ == "_DDPSinkBackward":
        below = node.next_functions  # one for each tensor
        return below[tensor.output_nr][0] if tensor.output_nr < len(below) else None
    return node


def _parameters(node: Any) -> list[Any]:
    """The parameters whose gradients would come through that node of a graph."""
    found, seen, waiting = [], {node}, [node] if node is not None else []
    while waiting and len(seen) < _NODES:
        here = waiting.pop()
        if (variable := getattr(here, "variable", None)) is not None:
            found.append(variable)
        for following, _ in here.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found if not waiting else []
