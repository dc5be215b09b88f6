"""Lets a program for GPUs run where there is none: what it puts on a GPU stays where it is."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

_NOTHING = (
    "set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed",
    "manual_seed_all", "ipc_collect",
)  # fmt: skip
_ZERO = ("current_device", "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
_ACCELERATORS = ("cuda", "hpu", "xpu", "npu")


def pretend(torch: Any) -> None:
    """Patch what asks for a device."""
    for name in _NOTHING:
        setattr(torch.cuda, name, lambda *args, **kwargs: None)
    for name in _ZERO:
        setattr(torch.cuda, name, lambda *args, **kwargs: 0)
    _autocast(torch)
    _wrappers(torch)
    _meshes()
    _function_mode(torch).__enter__()


def leave_out_data(torch: Any) -> None:
    """Patch what can't be done with tensors that have no data: nothing is saved or compared between ranks."""
    serialization: Any = sys.modules["torch.serialization"]
    torch.save = serialization.save = lambda *args, **kwargs: None
    _conversions(torch)
    _loaders(torch)
    kind = torch.nn.parallel.DistributedDataParallel
    kind.__init__ = functools.partialmethod(kind.__init__, init_sync=False)
    torch.distributed.Reducer._rebuild_buckets = lambda this: False  # noqa: SLF001 - as large, in another order


def _on_cpu(torch: Any, value: Any) -> Any:
    if isinstance(value, str) and value.partition(":")[0] in _ACCELERATORS:
        return "cpu"
    if isinstance(value, torch.device) and value.type in _ACCELERATORS:
        return torch.device("cpu")
    return value


def _function_mode(torch: Any) -> Any:
    base: Any = importlib.import_module("torch.overrides").TorchFunctionMode
    tensor = torch.Tensor
    stays = {tensor.cuda, tensor.pin_memory}

    class OnCpu(base):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            if func in stays:
                return args[0]
            if func is torch.device:  # the processor has no numbers
                return _on_cpu(torch, func(*args, **kwargs))
            if func is tensor.to and len(args) > 1 and type(args[1]) is int:
                args = (args[0], "cpu", *args[2:])
            if "device" in kwargs:
                device = "cpu" if type(kwargs["device"]) is int else _on_cpu(torch, kwargs["device"])
                kwargs = {**kwargs, "device": device}
            if kwargs.get("pin_memory"):
                kwargs = {**kwargs, "pin_memory": False}
            return func(*(_on_cpu(torch, a) for a in args), **kwargs)

    return OnCpu()


def _conversions(torch: Any) -> None:
    """Convert modules by new parameters: tensors without data can't be exchanged in place."""
    made: dict[int, tuple[Any, Any]] = {}

    def apply(this: Any, fn: Any, recurse: bool = True) -> Any:
        for child in this.children() if recurse else ():
            child._apply(fn)  # noqa: SLF001 - as the original
        for held in (this._parameters, this._buffers):  # noqa: SLF001
            for name, tensor in held.items():
                if tensor is None:
                    continue
                known = made.get(id(tensor))  # shared by two modules
                with torch.no_grad():
                    new = known[1] if known is not None and known[0] is tensor else fn(tensor)
                if new is tensor:
                    continue
                if held is this._parameters and not isinstance(new, torch.nn.Parameter):  # noqa: SLF001
                    new = torch.nn.Parameter(new, tensor.requires_grad)
                made[id(tensor)] = (tensor, new)
                held[name] = new
        return this

    torch.nn.Module._apply = apply  # noqa: SLF001


def _loaders(torch: Any) -> None:
    """Load in this process: tensors without data can't be passed on, and loading takes no memory of a GPU."""
    kind = sys.modules["torch.utils.data.dataloader"].DataLoader
    make = kind.__init__

    @functools.wraps(make)
    def init(this: Any, *args: Any, **kwargs: Any) -> None:
        args = (*args[:5], 0, *args[6:]) if len(args) > 5 else args
        for name in ("num_workers", "pin_memory", "persistent_workers", "prefetch_factor", "multiprocessing_context"):
            kwargs.pop(name, None)
        make(this, *args, **kwargs)

    kind.__init__ = init


def _autocast(torch: Any) -> None:
    kind = sys.modules["torch.amp.autocast_mode"].autocast
    make = kind.__init__

    @functools.wraps(make)
    def init(this: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type in _ACCELERATORS:
            device_type, dtype = "cpu", dtype or torch.float16
        make(this, device_type, dtype, *args, **kwargs)

    kind.__init__ = init


def _wrappers(torch: Any) -> None:
    """Wrap without the numbers of devices."""
    importlib.import_module("torch.nn.parallel.distributed")
    kind = torch.nn.parallel.DistributedDataParallel
    make = kind.__init__

    @functools.wraps(make)
    def init(this: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kw: Any) -> None:
        make(this, module, None, None, *args, **kw)

    kind.__init__ = init


def _meshes() -> None:
    """Make meshes of this machine's processor, with numbers: they compute with the numbers of ranks."""
    mesh: Any = importlib.import_module("torch.distributed.device_mesh")
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor")
    begin = mesh.DeviceMesh.__init__

    @functools.wraps(begin)
    def init_mesh(this: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        with fake.unset_fake_temporarily():
            begin(this, "cpu" if device_type in _ACCELERATORS else device_type, *args, **kwargs)

    mesh.DeviceMesh.__init__ = init_mesh
    make_mesh = mesh.init_device_mesh

    @functools.wraps(make_mesh)
    def init_device_mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        with fake.unset_fake_temporarily():
            return make_mesh("cpu" if device_type in _ACCELERATORS else device_type, *args, **kwargs)

    module: Any
    for module in list(sys.modules.values()):
        named = getattr(module, "__name__", "").startswith("torch.distributed")
        if named and vars(module).get("init_device_mesh") is make_mesh:
            module.init_device_mesh = init_device_mesh
