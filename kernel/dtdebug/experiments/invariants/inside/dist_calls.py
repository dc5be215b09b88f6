"""Notes the program's own calls of torch.distributed: dropped works, groups, meshes, calls within a join."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside.lost_updates import GATHERING, LostWork
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes, guard_method
from dtdebug.experiments.invariants.inside.steps import Steps
from dtdebug_taxonomy.stacks.frames import is_library

_REDUCING = ("all_reduce", "all_reduce_coalesced")
_CALLS = (
    *_REDUCING, "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "gather", "scatter", "reduce_scatter",
    "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "isend", "irecv", "send", "recv",
)  # fmt: skip
_AWAITING = ("wait", "is_completed", "synchronize", "get_future", "result", "is_success")
"""Methods of a work by which a program learns that it has ended."""
_PAIRS = ("isend", "irecv", "send", "recv")
_MOST = 256


class Calls:
    """Observer of this process's calls."""

    def __init__(self, notes: WatchNotes, steps: Steps, lost: LostWork) -> None:
        self.notes, self._steps, self._lost = notes, steps, lost
        self._open: dict[int, tuple[Any, str, int, int, list[int]]] = {}
        """Id of a work -> (weak reference, call, site, step, data pointers)."""
        self._joins: list[bool] = []
        self._said = 0

    def patch(self, module: ModuleType) -> None:
        """Wrap the functions of `torch.distributed.distributed_c10d`."""
        for name in _CALLS:
            if hasattr(module, name):
                _replace(module, name, self._wrap_call(name, getattr(module, name)))
        _replace(module, "new_group", self._groups(module.new_group))
        work = module.Work
        for name in _AWAITING:
            if hasattr(work, name):
                setattr(work, name, self._awaiting(getattr(work, name)))

    def patch_join(self, module: ModuleType) -> None:
        """Wrap the context manager for uneven inputs."""
        kind = module.Join
        enter, leave = kind.__enter__, kind.__exit__

        @functools.wraps(enter)
        def entering(join: Any) -> Any:
            self._enters(bool(join._enable and not join._throw_on_early_termination))  # noqa: SLF001 - only there
            return enter(join)

        @functools.wraps(leave)
        def leaving(join: Any, *raised: Any) -> Any:
            if self._joins:
                self._joins.pop()
            return leave(join, *raised)

        kind.__enter__, kind.__exit__ = entering, leaving

    @guard_method
    def _enters(self, shadows: bool) -> None:
        self._joins.append(shadows)
        if self._joins == [shadows]:
            self.notes.put("join", f=self._steps.passes())

    def patch_mesh(self, module: ModuleType) -> None:
        """Wrap the construction of a mesh; slices of a mesh are ignored."""
        kind = module.DeviceMesh
        make = kind.__init__

        @functools.wraps(make)
        def making(mesh: Any, *args: Any, **kwargs: Any) -> None:
            make(mesh, *args, **kwargs)
            self._mesh(mesh, sys._getframe(1))  # noqa: SLF001 - documented

        kind.__init__ = making

    @guard_method
    def _mesh(self, mesh: Any, frame: Any) -> None:
        if frame.f_code.co_name == "init_device_mesh":
            frame = frame.f_back
        elif is_library(frame.f_code.co_filename):
            return
        names = list(mesh.mesh_dim_names or ())
        rows = mesh.mesh
        self.notes.put(
            "mesh",
            shape=list(rows.shape),
            names=names,
            ranks=rows.flatten().tolist()[:4096],
            site=self.notes.site(frame),
        )
        self.notes.flush()

    def _groups(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
            made = function(ranks, *args, **kwargs)
            self._group(ranks, kwargs, sys._getframe(1))  # noqa: SLF001 - documented
            return made

        return new_group

    @guard_method
    def _group(self, ranks: Any, kwargs: dict[str, Any], frame: Any) -> None:
        if not kwargs.get("use_local_synchronization"):
            named = None if ranks is None else [int(r) for r in ranks][:4096]
            self.notes.put("group", ranks=named, site=self.notes.site(frame))

    def _awaiting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wait(work: Any, *args: Any, **kwargs: Any) -> Any:
            self._open.pop(id(work), None)
            return function(work, *args, **kwargs)

        return wait

    def _wrap_call(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        torch: Any = sys.modules["torch"]

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return function(*args, **kwargs)
            result = function(*args, **kwargs)
            self._note_call(name, args, kwargs, result, sys._getframe(1))  # noqa: SLF001 - documented
            return result

        return call

    @guard_method
    def _note_call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, frame: Any) -> None:
        module: Any = sys.modules["torch.distributed.distributed_c10d"]
        own = not is_library(frame.f_code.co_filename)
        group = kwargs.get("group")
        if group is None:  # positionally it is among the other arguments
            group = next((a for a in args if isinstance(a, module.ProcessGroup) or a is _outside(module)), None)
        tensors = _tensors((*args, *kwargs.values()))
        self._steps.reductions.calls.add(name)
        if group is not None and (group is _outside(module) or not module._world.pg_map.get(group)):  # noqa: SLF001
            if own:
                self._once("outside", name, frame)
            return
        if name in _REDUCING:
            ranks = module.get_process_group_ranks(group if group is not None else module.group.WORLD)
            self._steps.reduces(tensors, ranks, _operation(args, kwargs), ended=result is None)
        else:
            sizes = [t.numel() for t in tensors if t.is_floating_point()]  # generator states are bytes
            reductions = self._steps.reductions
            reductions.largest = max([reductions.largest, *sizes])
            if name == "reduce" and _root(args, kwargs, group, module) not in (None, module.get_rank()):
                reductions.gives(tensors)
        if not own:
            return
        if name in GATHERING:
            self._lost.gathers(name, tensors, frame)
        if self._joins and self._joins[-1] and name not in _PAIRS:
            self._once("joined", name, frame)
        if result is not None and isinstance(result, module.Work) and len(self._open) < _MOST:
            number = id(result)
            site = self.notes.site(frame)
            pointers = [t.data_ptr() for t in tensors[:64] if t.device.type != "meta"]
            ref = weakref.ref(result, lambda _, n=number: self._note_dropped(n))  # type: ignore[misc]
            self._open[number] = (ref, name, site, self._steps.now, pointers)

    def _note_dropped(self, number: int) -> None:
        """Note a work that was dropped without waiting."""
        found = self._open.pop(number, None)
        if found is not None and not sys.is_finalizing():
            self._tell("dropped", call=found[1], site=found[2], s=found[3])

    @guard_method
    def before_step(self, optimizer: Any) -> None:
        """Note gradients that the step reads while they are still being exchanged."""
        self._lost.before_step(optimizer)
        if not self._open:
            return
        grads = {
            p.grad.data_ptr()
            for group in optimizer.param_groups
            for p in group.get("params", ())
            if p.grad is not None and type(p.grad) is sys.modules["torch"].Tensor
        }
        for _, name, site, step, pointers in list(self._open.values()):
            if grads.intersection(pointers):
                self._tell("early", call=name, site=site, s=step)
                break

    def forget_open(self) -> None:
        """Forget open works: the device has finished everything."""
        self._open.clear()

    @guard_method
    def _once(self, kind: str, name: str, frame: Any) -> None:
        self._tell(kind, call=name, site=self.notes.site(frame), s=self._steps.now)

    @guard_method
    def _tell(self, kind: str, **values: Any) -> None:
        self._said += 1
        if self._said <= _MOST:
            self.notes.put(kind, **values)


def _replace(module: Any, name: str, new: Any) -> None:
    """Replace a function, also where `torch.distributed` imports it."""
    old = getattr(module, name)
    setattr(module, name, new)
    package = sys.modules.get("torch.distributed")
    if getattr(package, name, None) is old:
        setattr(package, name, new)


def _outside(module: Any) -> Any:
    return module.GroupMember.NON_GROUP_MEMBER


def _root(args: tuple[Any, ...], kwargs: dict[str, Any], group: Any, module: Any) -> Any:
    """Return the global rank that receives the sum, or None if unknown."""
    if kwargs.get("group_dst") is not None:
        return module.get_global_rank(group if group is not None else module.group.WORLD, kwargs["group_dst"])
    return kwargs.get("dst", args[1] if len(args) > 1 else None)


def _operation(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    found = kwargs.get("op", args[1] if len(args) > 1 else "SUM")
    return str(found).rpartition(".")[2]


def _tensors(values: Any) -> list[Any]:
    torch: Any = sys.modules["torch"]
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [v for v in value if isinstance(v, torch.Tensor)]
    return found
