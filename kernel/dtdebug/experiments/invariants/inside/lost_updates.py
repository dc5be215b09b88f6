"""Notes lost work: weights that a load leaves out, gradients that end at a gathered tensor."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.models import Models
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug_taxonomy.stacks.frames import is_library

GATHERING = frozenset(("all_gather", "all_gather_into_tensor"))
_NODES, _PLACES, _STEPS = 4096, 8, 3
"""Maximum nodes of a graph to visit and places to remember; steps before it is noted."""
_LOADS, _TENSORS = 8, 8
"""Maximum loads to remember, and tensors of each to recognise it."""


class GatherCall:
    """Call that gathers a tensor with a graph: its output has none."""

    def __init__(self, call: str, site: int, step: int, parameters: list[Any]) -> None:
        self.call, self.site, self.step = call, site, step
        self.parameters = [weakref.ref(p) for p in parameters]
        self.bare = 0
        """Number of steps in which no parameter behind it had a gradient."""
        self.reached = False


class Load:
    """Load in which no name matched; its values may still reach a model in another way."""

    def __init__(self, model: Any, state: Mapping[str, Any], site: int, step: int) -> None:
        self.model, self.site, self.step = weakref.ref(model), site, step
        self.given, self.first = len(state), str(next(iter(state)))[:200]
        self.known = {_mark(t) for t in [t for t in state.values() if _tells(t)][:_TENSORS]}

    def is_filled(self, parameters: list[Any], loaded: Iterable[Any]) -> bool:
        """True if some of its values are in one of these parameters, the model, or another model loaded since."""
        model = self.model()
        if model is None or model in loaded:
            return True
        held = [*model.parameters(), *parameters, *(p for other in loaded for p in other.parameters())]
        sizes = {size for size, _ in self.known}
        return any(p.numel() in sizes and _tells(p) and _mark(p) in self.known for p in held)


class LostWork:
    """Observer of this process's loads and gathers."""

    def __init__(self, notes: WatchNotes, models: Models, steps: Steps) -> None:
        self.notes, self._models, self._steps = notes, models, steps
        self._gathered: dict[int, GatherCall] = {}
        self._loads: list[Load] = []

    def patch(self, module: ModuleType) -> None:
        """Wrap `torch.nn.Module.load_state_dict`."""
        kind = module.Module
        load = kind.load_state_dict

        @functools.wraps(load)
        def load_state_dict(model: Any, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
            result = load(model, state_dict, *args, **kwargs)
            self._note_load(model, state_dict, result, sys._getframe(1))  # noqa: SLF001 - documented
            return result

        kind.load_state_dict = load_state_dict

    @guard_method
    def _note_load(self, model: Any, state: Any, result: Any, frame: Any) -> None:
        given, left = len(state), len(getattr(result, "unexpected_keys", ()))
        if given > left:
            self._models.loaded.add(model)
        elif given and next(model.parameters(), None) is not None:
            while frame is not None and is_library(frame.f_code.co_filename):
                frame = frame.f_back
            if len(self._loads) < _LOADS:
                self._loads.append(Load(model, state, self.notes.site(frame), self._steps.now))

    def gathers(self, call: str, tensors: list[Any], frame: Any) -> None:
        """Remember a gathering call, once for each place."""
        site = self.notes.site(frame)
        if not sys.modules["torch"].is_grad_enabled() or site in self._gathered or len(self._gathered) >= _PLACES:
            return
        behind = [p for tensor in tensors if tensor.grad_fn is not None for p in _parameters(_begin(tensor))]
        if behind:
            self._gathered[site] = GatherCall(call, site, self._steps.now, behind)

    def before_step(self, optimizer: Any) -> None:
        """Note loads without effect and gathers without gradients, once gradients are complete."""
        if not self._gathered and not self._loads:
            return
        parameters = [p for group in optimizer.param_groups for p in group.get("params", ())]
        loads, self._loads = self._loads, []
        for load in loads:
            if not load.is_filled(parameters, self._models.loaded):
                self.notes.put("unloaded", given=load.given, first=load.first, s=load.step, site=load.site)
        held = {id(p) for p in parameters}
        for place in [place for place in self._gathered.values() if not place.reached]:
            alive = [p for ref in place.parameters if (p := ref()) is not None]
            if any(id(p) in held for p in alive):
                self._counts(place, alive)

    def _counts(self, place: GatherCall, alive: list[Any]) -> None:
        """Count steps in which those parameters have no gradient at all."""
        place.reached = any(map(_has_gradient, alive))
        place.bare += not place.reached
        if place.bare == _STEPS or (place.reached and place.bare > _STEPS):
            n = 0 if place.reached else len(alive)
            self.notes.put("gathered", call=place.call, s=place.step, n=n, site=place.site)


def _tells(tensor: Any) -> bool:
    """True if its values identify it: they are not all equal, as in a layer that begins with zeros."""
    torch: Any = sys.modules["torch"]
    if not isinstance(tensor, torch.Tensor) or not fingerprints.is_whole(tensor) or tensor.numel() < 2:
        return False
    flat = tensor.detach().reshape(-1)
    return bool((flat != flat[0]).any())


def _mark(tensor: Any) -> tuple[int, str]:
    return tensor.numel(), fingerprints.hashes([tensor])[0]


def _has_gradient(parameter: Any) -> bool:
    grad = parameter.grad
    return grad is not None and (not fingerprints.is_whole(grad) or bool(grad.count_nonzero()))


def _begin(tensor: Any) -> Any:
    """Return the node that made the tensor; below DDP's, which all outputs of a model share."""
    node = tensor.grad_fn
    if type(node).__name__ == "_DDPSinkBackward":
        below = node.next_functions  # one for each tensor
        return below[tensor.output_nr][0] if tensor.output_nr < len(below) else None
    return node


def _parameters(node: Any) -> list[Any]:
    """Return the parameters whose gradients would pass that node of a graph."""
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
