"""Installs the watch in a rank: once torch is imported, and after the import of its later modules."""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.clipping import Clipping
from dtdebug.experiments.invariants.inside.dist_calls import Calls
from dtdebug.experiments.invariants.inside.loaders import Loaders
from dtdebug.experiments.invariants.inside.lost_updates import LostWork
from dtdebug.experiments.invariants.inside.models import Models, sharded_by
from dtdebug.experiments.invariants.inside.phases import PhaseSampler
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug.experiments.repeat.after_import import after_import, is_launcher
from dtdebug.experiments.repeat.training_steps import TrainingSteps

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


FOLDER = "watch"
"""Folder of all processes' notes, below the run's folder."""


class Watch:
    """All observers of one process."""

    def __init__(self, folder: Path) -> None:
        (folder / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        self.notes = WatchNotes(str(folder / FOLDER))
        self.models = Models(self.notes)
        self.steps = Steps(self.notes, self.models)
        self.lost = LostWork(self.notes, self.models, self.steps)
        self.calls = Calls(self.notes, self.steps, self.lost)
        self.loaders = Loaders(self.notes, self.steps)
        self.clipping = Clipping(self.notes, self.steps, self.models)
        self.replicated = ReplicatedTensors(self.notes, self.steps)
        self._sampling = False

    def patches(self) -> dict[str, Callable[[ModuleType], None]]:
        """Return module -> function to call once it is imported."""
        return {
            "torch.autograd": self._autograd,
            "torch.optim.optimizer": self._optimizer,
            "torch.nn.modules.module": self.lost.patch,
            "torch.amp.grad_scaler": self.clipping.patch_scaler,
            "torch.nn.utils.clip_grad": self.clipping.patch,
            "torch.cuda": self._cuda,
            "torch.nn.parallel.distributed": self._ddp,
            "torch.distributed.distributed_c10d": self.calls.patch,
            "torch.distributed.algorithms.join": self.calls.patch_join,
            "torch.distributed.device_mesh": self.calls.patch_mesh,
            "torch.distributed.tensor._api": self.replicated.patch,
            "torch.distributed.fsdp.fully_sharded_data_parallel": self._fsdp,
            "torch.distributed.fsdp._fully_shard._fsdp_state": self._fully_shard,
            "torch.utils.data.dataloader": self.loaders.patch,
            "torch.utils.data.distributed": self.loaders.patch_sampler,
        }

    def patch(self, name: str, module: ModuleType) -> None:
        """Patch a module, or disable the watch with a message if that fails."""
        try:
            self.patches()[name](module)
        except Exception as error:
            self.notes.fails(error, f"this release of {name}")

    def _autograd(self, module: ModuleType) -> None:
        backward = module.backward

        @functools.wraps(backward)
        def looking(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if sys.modules["torch"].compiler.is_compiling():
                return backward(tensors, *args, **kwargs)
            self.steps.backward(tensors, sys._getframe(1))  # noqa: SLF001 - documented
            result = backward(tensors, *args, **kwargs)
            self.steps.after_backward()
            return result

        module.backward = looking  # type: ignore[attr-defined]

    def _optimizer(self, module: ModuleType) -> None:
        def begins(optimizer: Any, args: Any, kwargs: Any) -> Any:
            if not self._sampling:
                self._sampling = True
                PhaseSampler(self.notes, self.steps).start()
            self.calls.before_step(optimizer)
            return self.steps.before_step(optimizer, args, kwargs)

        TrainingSteps(begins, self.steps.after_step).hook(module)

    def _cuda(self, module: ModuleType) -> None:
        synchronize = module.synchronize

        @functools.wraps(synchronize)
        def looking(*args: Any, **kwargs: Any) -> Any:
            result = synchronize(*args, **kwargs)
            self.calls.forget_open()
            return result

        module.synchronize = looking  # type: ignore[attr-defined]

    def _ddp(self, module: ModuleType) -> None:
        kind = module.DistributedDataParallel
        make, before, hook = kind.__init__, kind._pre_forward, kind.register_comm_hook  # noqa: SLF001 - also `replicate`'s
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        torch: Any = sys.modules["torch"]

        @functools.wraps(make)
        def making(model: Any, *args: Any, **kwargs: Any) -> None:
            make(model, *args, **kwargs)
            group = c10d.get_process_group_ranks(model.process_group)
            self.models.note_model(model, "ddp", group, sys._getframe(1))  # noqa: SLF001 - documented

        @functools.wraps(before)
        def _pre_forward(model: Any, *inputs: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling() and torch.is_grad_enabled():
                synced, frame = model.require_backward_grad_sync, sys._getframe(1)  # noqa: SLF001 - documented
                self.models.forward(model, (inputs, kwargs), self.steps.now, frame, synced=synced)
            return before(model, *inputs, **kwargs)

        @functools.wraps(hook)
        def register_comm_hook(model: Any, state: object, hook_: Any) -> Any:
            self.models.note_hook(model, hook_)
            return hook(model, state, self.models.wrap_hook(model, hook_))

        kind.__init__, kind._pre_forward, kind.register_comm_hook = making, _pre_forward, register_comm_hook  # noqa: SLF001

    def _fsdp(self, module: ModuleType) -> None:
        kind = module.FullyShardedDataParallel
        forward = kind.forward
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        torch: Any = sys.modules["torch"]

        @functools.wraps(forward)
        def looking(model: Any, *args: Any, **kwargs: Any) -> Any:
            if (
                not torch.compiler.is_compiling()
                and torch.is_grad_enabled()
                and getattr(model, "_is_root", None) in (None, True)
            ):
                frame = sys._getframe(1)  # noqa: SLF001 - documented
                if self.models.find(model) is None:
                    self.models.note_model(model, "fsdp", c10d.get_process_group_ranks(model.process_group), frame)
                self.models.forward(model, (args, kwargs), self.steps.now, frame, synced=True)
            return forward(model, *args, **kwargs)

        kind.forward = looking

    def _fully_shard(self, module: ModuleType) -> None:
        kind = module.FSDPState
        before = kind._root_pre_forward  # noqa: SLF001 - the only place that every root passes
        torch: Any = sys.modules["torch"]

        @functools.wraps(before)
        def _root_pre_forward(state: Any, model: Any, args: Any, kwargs: Any) -> Any:
            root = state._state_ctx.iter_forward_root is None if hasattr(state, "_state_ctx") else False  # noqa: SLF001
            if root and not torch.compiler.is_compiling() and torch.is_grad_enabled():
                frame = sys._getframe(1)  # noqa: SLF001 - documented
                if self.models.find(model) is None:
                    self.models.note_model(model, "fully_shard", _mesh_ranks(model), frame)
                self.models.forward(model, (args, kwargs), self.steps.now, frame, synced=_reduces(model))
            return before(state, model, args, kwargs)

        kind._root_pre_forward = _root_pre_forward  # noqa: SLF001 - see above


def _reduces(model: Any) -> bool:
    """True if a sharded model reduces its gradients in the next backward pass, or if that is unknown."""
    try:
        return all(getattr(group, "reduce_grads", True) for group in sharded_by(model))
    except Exception:  # the job continues
        return True


def _mesh_ranks(model: Any) -> list[int]:
    """Return the ranks that divide the data of a sharded model; empty if unknown.

    The root may have no parameters of its own; then the sharded modules within it are used.
    """
    for group in sharded_by(model):
        mesh = getattr(getattr(group, "mesh_info", None), "mesh", None)
        if mesh is not None:
            return list(mesh.mesh.flatten().tolist())
    return []


def begin(told: dict[str, Any], torch: ModuleType) -> None:
    """Watch this process, unless it is a launcher; `watched` of the settings is the run's folder."""
    if not is_launcher():
        watch = Watch(Path(told.get("watched", told["folder"])))
        after_import(watch.patches(), watch.patch)
