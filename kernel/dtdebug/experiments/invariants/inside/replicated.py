"""Notes tensors that are declared equal on several ranks: replicated DTensors."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps

_MOST, _STEPS = 64, 8
"""Maximum tensors of a group, and steps, whose values are noted."""


class ReplicatedTensors:
    """Observer of tensors that this process declares replicated."""

    def __init__(self, notes: WatchNotes, steps: Steps) -> None:
        self.notes, self._steps = notes, steps
        self._counts: Counter[tuple[int, ...]] = Counter()

    def patch(self, module: ModuleType) -> None:
        """Wrap `DTensor.from_local`, through which tensor-parallel plans take their inputs."""
        kind = module.DTensor
        make = kind.from_local
        torch: Any = sys.modules["torch"]

        @functools.wraps(make)
        def from_local(
            local_tensor: Any, device_mesh: Any = None, placements: Any = None, *args: Any, **kwargs: Any
        ) -> Any:
            if device_mesh is not None and placements is not None and not torch.compiler.is_compiling():
                self._note_tensor(local_tensor, device_mesh, placements, sys._getframe(1))  # noqa: SLF001 - documented
            return make(local_tensor, device_mesh, placements, *args, **kwargs)

        kind.from_local = staticmethod(from_local)

    @guard_method
    def _note_tensor(self, tensor: Any, mesh: Any, placements: Any, frame: Any) -> None:
        if (
            self._steps.done >= _STEPS
            or not fingerprints.is_whole(tensor)
            or not tensor.numel()
            or mesh.ndim != len(placements)
        ):
            return
        if not sys.modules["torch"].is_grad_enabled():
            return
        for dimension, placement in enumerate(placements):
            if not placement.is_replicate() or mesh.size(dimension) < 2:
                continue
            c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
            group = tuple(c10d.get_process_group_ranks(mesh.get_group(dimension)))
            self._counts[group] += 1
            if self._counts[group] <= _MOST:
                self.notes.put(
                    "replicated",
                    group=group,
                    n=self._counts[group],
                    shape=list(tensor.shape),
                    values=fingerprints.spread(tensor),
                    s=self._steps.now,
                    site=self.notes.site(frame),
                )
