"""Notes ineffective clipping: of scaled gradients, of shards by one rank's own norm, or at the wrong time."""

from __future__ import annotations

import functools
import sys
import weakref
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.models import Models
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug_taxonomy.stacks.frames import is_library

_CLIPS = ("clip_grad_norm_", "clip_grad_value_")
_STEPS = 8
"""Number of steps that are checked for gradients reduced after they were clipped."""


_LATE = 3
"""Number of late clips before it is noted."""


class Clipping:
    """Observer of this process's clipping and loss scaling."""

    def __init__(self, notes: WatchNotes, steps: Steps, models: Models) -> None:
        self.notes, self._steps, self._models = notes, steps, models
        self._scaler: Any = None
        self._scale: Any = None
        """torch's `get_scale`, which returns the factor of the losses."""
        self._said: set[str] = set()
        self._late = 0
        """Number of clips after the step; -1 once a clip came before its step."""
        self._late_at = 0

    def patch(self, module: ModuleType) -> None:
        """Wrap the functions of `torch.nn.utils.clip_grad`, also where `torch.nn.utils` imports them."""
        package = sys.modules.get("torch.nn.utils")
        for name in _CLIPS:
            old = getattr(module, name)
            new = self._wrap_clip(name, old)
            setattr(module, name, new)
            if getattr(package, name, None) is old:
                setattr(package, name, new)

    def patch_scaler(self, module: ModuleType) -> None:
        """Wrap the scaler's methods: gradients are scaled between `scale` and `unscale_` or `update`.

        A program that calls `get_scale` may divide by the scale itself.
        """
        kind = module.GradScaler
        self._scale = kind.get_scale
        clipping = self

        def looking(name: str, *, scales: bool) -> None:
            function = getattr(kind, name)

            @functools.wraps(function)
            def call(scaler: Any, *args: Any, **kwargs: Any) -> Any:
                if scaler.is_enabled():
                    clipping._scales(scaler, scales=scales)
                return function(scaler, *args, **kwargs)

            setattr(kind, name, call)

        looking("scale", scales=True)
        for name in ("unscale_", "update", "get_scale"):
            looking(name, scales=False)

    @guard_method
    def _scales(self, scaler: Any, *, scales: bool) -> None:
        if scales:
            self._steps.note_scaling()
        self._scaler = weakref.ref(scaler) if scales else None

    def _wrap_clip(self, name: str, function: Any) -> Any:
        torch: Any = sys.modules["torch"]

        @functools.wraps(function)
        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return function(parameters, *args, **kwargs)
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)  # a generator can be read once
            self._clips(name, parameters, sys._getframe(1))  # noqa: SLF001 - documented
            result = function(parameters, *args, **kwargs)
            limit = kwargs.get("max_norm", args[0] if args else None)
            self._note_late(name, parameters, limit, result, sys._getframe(1))  # noqa: SLF001 - documented
            return result

        return clip

    @guard_method
    def _clips(self, name: str, parameters: Any, frame: Any) -> None:
        scaler = self._scaler() if self._scaler is not None else None
        if scaler is not None and "scaled" not in self._said and self._scale(scaler) != 1.0:
            self._tell("scaled", name, frame)
        self._remember(name, parameters, frame)
        if "own" in self._said or name != "clip_grad_norm_" or "/fsdp/" in frame.f_code.co_filename.replace("\\", "/"):
            return
        rows = parameters if isinstance(parameters, list) else [parameters]
        if any(hasattr(p, "_fsdp_flattened") for p in rows) and self._has_shards():
            self._tell("own", name, frame)

    @guard_method
    def _note_late(self, name: str, parameters: Any, limit: Any, norm: Any, frame: Any) -> None:
        """Note gradients that are clipped after the step that used them."""
        rows = parameters if isinstance(parameters, list) else [parameters]
        if self._late < 0 or name != "clip_grad_norm_" or not rows or not self._steps.done:
            return
        if not self._steps.steps_without_backward(rows):
            self._late = -1
        elif (
            limit is not None and fingerprints.is_whole(norm) and float(norm) > float(limit)
        ):  # else it is only measured
            self._late += 1
            self._late_at = self._late_at or self._steps.now - 1
            if self._late == _LATE:
                self._tell("late", name, frame, step=self._late_at)

    def _remember(self, name: str, parameters: Any, frame: Any) -> None:
        """Remember clipped gradients: if the program reduces them later, each rank has clipped its own."""
        if name != "clip_grad_norm_" or self._steps.done >= _STEPS:
            return
        weak = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef
        grads = [p.grad for p in parameters if p.grad is not None] if isinstance(parameters, list) else []
        site = self.notes.site(frame)
        self._steps.reductions.clipped = {
            g.data_ptr(): (weak(g.untyped_storage()), site) for g in grads if fingerprints.is_whole(g)
        }

    def _has_shards(self) -> bool:
        """True if each rank holds only a part of an FSDP model."""
        for model in self._models.all:
            strategy = getattr(model.ref(), "sharding_strategy", None)
            if model.kind == "fsdp" and len(model.group) > 1 and "FULL_SHARD" in str(strategy):
                return True
        return False

    def _tell(self, how: str, name: str, frame: Any, step: int = 0) -> None:
        self._said.add(how)
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        self.notes.put("clip", how=how, call=name, s=step or self._steps.now, site=self.notes.site(frame))
