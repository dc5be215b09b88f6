"""Intercepts every collective of a process in PyTorch's dispatcher, and calls listeners.

All collectives and messages of torch.distributed, also those of DDP's C++ reducer, FSDP, DTensor and compiled
functional collectives, pass the dispatcher as operators of the namespace `c10d`
(https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/Ops.cpp). A kernel at the key `BackendSelect`
sees each call, whatever its backend, and redispatches it; the user's code is not changed.

    class Listener:
        name = "the watch"                     # name in the message on standard error if it fails
        def before(self, call: Call) -> None: ...   # inputs are as the program passed them
        def after(self, call: Call, result) -> None: ...   # it has *begun*; its Work may not have ended

    road.add(Listener())

`call.number` counts the collectives of this process from 1; `call.op` is a name like "allreduce_"; `call.inputs` are
the tensors that the call reads (none for the receivers of a broadcast, whose contents are irrelevant), `call.outputs`
those that it writes, `call.group` has `name`, `ranks`, `rank` (of this process) and `ordinal`; `call.args` follow the
schema, and `call.value("root_rank")` returns one by name. `call.site()` is the line of the user's program that made the
call, valid only in `before` or `after`. Both run on the calling thread, without autograd, and must start no collective.
A listener that raises is removed, with one line on standard error; the job continues.

Calls on fake or meta tensors (tracing, shape propagation) reach no listener and are not counted.

Replay and rehearsal replace the process group: `road.instead(function)`; its exceptions are raised in the program.
"""

from __future__ import annotations

import importlib
import itertools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from dtdebug.experiments.collectives.inside import call_sites
from dtdebug.experiments.collectives.inside.groups import OwnGroup, group_of
from dtdebug.experiments.collectives.inside.install import complain

_READS = frozenset(("input", "inputs", "input_tensor", "input_tensors", "input_list"))
_WRITES = frozenset(("output", "outputs", "output_tensor", "output_tensors", "output_lists"))
_BOTH = frozenset(("tensor", "tensors"))
_ONLY_WRITES = frozenset(("recv_", "recv_any_source_"))
_ONLY_READS = frozenset(("send",))
_NEITHER = frozenset(("barrier", "monitored_barrier_"))
_SKIPPED = frozenset(("check_for_nan",))
"""Operators that are not collectives: they check one tensor."""
_NEEDS = ("_C._dispatch_get_all_op_names", "_C.DispatchKey.BackendSelect", "_C.DispatchKeySet", "library.Library")


class NotOnThisReleaseError(RuntimeError):
    """The release of PyTorch lacks something that is needed."""


class Listener(Protocol):
    """Observer of each collective."""

    name: str

    def before(self, call: OwnCall) -> None:
        """Handle a call before it begins."""

    def after(self, call: OwnCall, result: Any) -> None:
        """Handle a call that has begun; if it is synchronous, its caller waits for it next."""


class Op:
    """Operator: its name and the positions of its arguments."""

    __slots__ = ("at", "name", "overload", "returns")

    def __init__(self, name: str, overload: Any) -> None:
        self.name, self.overload = name, overload
        schema = overload._schema  # noqa: SLF001 - has no other name
        self.at = {argument.name: index for index, argument in enumerate(schema.arguments)}
        self.returns = tuple(str(value.type) for value in schema.returns)
        """Return types, such as `List[Tensor]` and `__torch__.torch.classes.c10d.Work`."""


class OwnCall:
    """Collective or message that this process begins."""

    __slots__ = ("_group", "_op", "_site", "args", "kwargs", "number")

    def __init__(self, number: int, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.number, self._op, self.args, self.kwargs = number, op, args, kwargs
        self._site: tuple[str, int] | None = None
        self._group: OwnGroup | None = None

    @property
    def op(self) -> str:
        """Name, such as `allreduce_` or `_allgather_base_`."""
        return self._op.name

    @property
    def returns(self) -> tuple[str, ...]:
        """Types that the operator returns."""
        return self._op.returns

    def value(self, name: str, default: Any = None) -> Any:
        """Return the argument with that name in the schema."""
        index = self._op.at.get(name)
        if index is not None and index < len(self.args):
            return self.args[index]
        return self.kwargs.get(name, default)

    @property
    def group(self) -> OwnGroup:
        """Process group of the call."""
        if self._group is None:
            self._group = group_of(self.value("process_group"))
        return self._group

    @property
    def tensors(self) -> list[Any]:
        """All tensors, in the order of the arguments."""
        return flat([*self.args, *self.kwargs.values()])

    @property
    def inputs(self) -> list[Any]:
        """Tensors whose values the call sends or reduces."""
        if self.op in _NEITHER or self.op in _ONLY_WRITES:
            return []
        if self.op == "broadcast_" and self.group.rank != self.value("root_rank"):
            return []
        return self._tensors_of(_READS | _BOTH)

    @property
    def outputs(self) -> list[Any]:
        """Tensors that the call writes on this rank."""
        if self.op in _NEITHER or self.op in _ONLY_READS:
            return []
        return self._tensors_of(_WRITES | _BOTH)

    def _tensors_of(self, names: frozenset[str]) -> list[Any]:
        return flat([self.value(name) for name in self._op.at if name in names])

    def site(self) -> tuple[str, int]:
        """Return the file and line of the user's program that made the call, or ("", 0)."""
        if self._site is None:
            self._site = call_sites.here()
        return self._site


Replacement = Callable[[OwnCall], Any]
_listeners: list[Listener] = []
_replacement: Replacement | None = None
_numbers = itertools.count(1)
_library: Any = None
_torch: Any = None


def add(listener: Listener) -> None:
    """Call the listener for every collective from now on."""
    _listeners.append(listener)


def remove(listener: Listener) -> None:
    """Remove a listener."""
    if listener in _listeners:
        _listeners.remove(listener)


def instead(function: Replacement) -> None:
    """Let a function perform every collective instead of the process group."""
    global _replacement
    _replacement = function


def flat(value: Any) -> list[Any]:
    """Return the tensors in an argument, in lists of any depth."""
    if isinstance(value, list | tuple):
        return [tensor for inner in value for tensor in flat(inner)]
    return [value] if isinstance(value, _torch.Tensor) else []  # asking a group for an attribute takes 25 us


def install(torch: ModuleType) -> None:
    """Install the kernels, once in a process.

    Raises:
        NotOnThisReleaseError: PyTorch has no such dispatcher (before 2.4), or was built without torch.distributed.

    """
    global _library, _torch
    if _library is not None:
        return
    t: Any = torch
    for need in _NEEDS:
        _get_attribute(t, need)
    distributed = importlib.import_module("torch.distributed")
    if not distributed.is_available():
        raise NotOnThisReleaseError(f"PyTorch {t.__version__} was built without torch.distributed")
    _get_attribute(t, "distributed.ProcessGroup.unbox")
    key = t._C.DispatchKey.BackendSelect  # noqa: SLF001 - there is no public name
    library = t.library.Library("c10d", "IMPL")
    below = t._C.DispatchKeySet(key)  # noqa: SLF001
    for full in t._C._dispatch_get_all_op_names():  # noqa: SLF001
        space, _, name = full.partition("::")
        if space == "c10d" and name not in _SKIPPED and "." not in name:
            op = Op(name, getattr(t.ops.c10d, name).default)
            if "process_group" in op.at:
                kernel = _kernel(op, below)
                _skip_compile(t, kernel.__code__)  # all kernels share this code
                library.impl(name, kernel, "BackendSelect", with_keyset=True)
    _torch, _library = t, library
    os.register_at_fork(after_in_child=_restart_numbers)


def _get_attribute(torch: Any, name: str) -> Any:
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            raise NotOnThisReleaseError(f"not on this release: PyTorch {torch.__version__} has no torch.{name}")
    return found


def _skip_compile(torch: Any, code: Any) -> None:
    """Keep torch.compile from compiling our kernels, which a compiled program calls.

    Releases without this option compile them needlessly, which takes seconds.
    """
    frames = torch._C._dynamo.eval_frame  # noqa: SLF001 - `torch.compiler.disable` would import all of TorchDynamo
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP  # noqa: SLF001
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))  # noqa: SLF001


def _kernel(op: Op, ours: Any) -> Callable[..., Any]:
    redispatch = op.overload.redispatch

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        if (not _listeners and _replacement is None) or _is_traced(args):
            return redispatch(keys - ours, *args, **kwargs)
        call = OwnCall(next(_numbers), op, args, kwargs)
        _tell(call, "before")
        result = redispatch(keys - ours, *args, **kwargs) if _replacement is None else _replacement(call)
        _tell(call, "after", result)
        return result

    return kernel


def _tell(call: OwnCall, what: str, *more: Any) -> None:
    for listener in tuple(_listeners):
        try:
            if _torch.is_grad_enabled():
                with _torch.no_grad():
                    getattr(listener, what)(call, *more)
            else:
                getattr(listener, what)(call, *more)
        except Exception as error:
            remove(listener)
            complain(f"{listener.name} has stopped at collective {call.number} ({type(error).__name__}: {error})")


def _is_traced(args: tuple[Any, ...]) -> bool:
    """True if the tensors have no values: the program is being traced."""
    for argument in args:
        for tensor in flat(argument):
            return bool(tensor.is_meta) or type(tensor).__name__ in ("FakeTensor", "FunctionalTensor")
    return False


def _restart_numbers() -> None:
    """Restart the numbering in a forked child."""
    global _numbers
    _numbers = itertools.count(1)
