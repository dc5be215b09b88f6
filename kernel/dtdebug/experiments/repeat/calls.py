"""Records how a program calls its models: inputs, random states and modes, from which a call can be repeated.

Only the outermost call of each model is recorded, whether it goes through a wrapper or past it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from dtdebug.experiments.repeat import random_states
from dtdebug.experiments.repeat.tensors import tensors_in, with_tensors
from dtdebug_taxonomy.stacks.frames import is_library

_BUFFERS = 64 << 20
"""Maximum bytes of buffers that are kept with a call."""
_WRAPPERS = ("DistributedDataParallel", "FullyShardedDataParallel", "OptimizedModule")


class Call:
    """One outermost call of a model."""

    def __init__(self, root: Any, args: Any, kwargs: Any, wrapper: str, frame: FrameType | None) -> None:
        self.root, self.args, self.kwargs, self.wrapper = root, args, kwargs, wrapper
        self.file, self.line = place(_outside(root, frame))
        self.random = random_states.states()
        self.cast = autocast_state()
        self.forward = vars(root).get("forward")
        """Function that the call runs, if it is not the method of its class."""
        self.training = [name for name, module in root.named_modules() if module.training]
        self.buffers: dict[str, Any] = {}
        self.outputs: list[Any] = []
        self.nodes: list[int] = []
        """Sequence numbers of the nodes that made the outputs."""
        self.grads: list[dict[int, Any]] = []
        """For each backward pass: index of an output -> gradient."""
        self.seen: list[tuple[str, float]] = []
        """(name of a module, digest of its output), in the order in which they ended."""

    def keep_buffers(self) -> None:
        """Keep copies of the buffers, if they are small."""
        rows = dict(self.root.named_buffers())
        if sum(b.numel() * b.element_size() for b in rows.values()) <= _BUFFERS:
            self.buffers = {name: b.detach().clone() for name, b in rows.items()}


class CallRecorder:
    """Recorder of the outermost calls of models with parameters, through torch's global module hooks."""

    def __init__(self, *, copies: bool, digests: bool = False) -> None:
        self._copies, self._digests = copies, digests
        self.calls: list[Call] = []
        self.begun: Callable[[Call], None] = lambda _: None
        self.passed: Callable[[Call, str, Any], None] = lambda *_: None
        """Called after each module within a recorded call, with its name."""
        self._wrapper = ""
        self._open: Call | None = None
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []
        self.backwards = 0
        self.failed: Callable[[Exception], None] = lambda _: None

    def start(self) -> None:
        """Begin to record."""
        if self._handles:
            return
        module: Any = sys.modules["torch.nn.modules.module"]
        self._handles = [
            module.register_module_forward_pre_hook(self._before),
            module.register_module_forward_hook(self._after, always_call=True),
        ]

    def stop(self) -> None:
        """Leave torch's modules as they were."""
        for handle in self._handles:
            handle.remove()
        self._handles, self._open, self._wrapper = [], None, ""

    @property
    def is_inside(self) -> bool:
        """True while a recorded call runs."""
        return self._open is not None

    def clear(self) -> None:
        """Forget the calls so far."""
        self.calls, self.backwards = [], 0

    def _before(self, module: Any, inputs: Any) -> None:
        try:
            torch: Any = sys.modules["torch"]
            if self._open is not None or not torch.is_grad_enabled() or torch.compiler.is_compiling():
                return
            if type(module).__name__ in _WRAPPERS:
                self._wrapper = type(module).__name__
                return
            if not any(p.requires_grad for p in module.parameters()):
                return
            frame = sys._getframe(1)  # noqa: SLF001 - documented
            args, kwargs = _arguments(frame, inputs)
            call = Call(module, self._copy(args), self._copy(kwargs), self._wrapper or _sharding(module), frame)
            call.keep_buffers()
            self._names = {id(m): name for name, m in module.named_modules()}
            self._open = call
            self.begun(call)
        except Exception as error:
            self.failed(error)

    def _copy(self, value: Any) -> Any:
        if not self._copies:
            return value
        return with_tensors(value, lambda t: t.detach().clone().requires_grad_(t.requires_grad))

    def _after(self, module: Any, _inputs: Any, output: Any) -> None:
        try:
            call = self._open
            if call is None:
                if type(module).__name__ in _WRAPPERS:
                    self._wrapper = ""
                return
            name = self._names.get(id(module))
            if name is None:
                return
            if self._digests and output is not None:
                call.seen.append((name, digest(output)))
            self.passed(call, name, module)
            if module is call.root:
                self._open = None
                self.calls.append(call)
                self._hook_outputs(call, output)
        except Exception as error:
            self._open = None
            self.failed(error)

    def _hook_outputs(self, call: Call, output: Any) -> None:
        call.outputs = list(tensors_in(output))
        for index, tensor in enumerate(call.outputs):
            if tensor.requires_grad and tensor.grad_fn is not None:
                call.nodes.append(tensor.grad_fn._sequence_nr())  # noqa: SLF001 - torch has no other name for it
                tensor.register_hook(self._saving(call, index))
        call.outputs = [t.detach() if self._copies else None for t in call.outputs]

    def _saving(self, call: Call, index: int) -> Callable[[Any], None]:
        def save(gradient: Any) -> None:
            while len(call.grads) <= self.backwards:
                call.grads.append({})
            held = call.grads[self.backwards]
            held[index] = held[index] + gradient if index in held else gradient.detach()

        return save


def repeat(call: Call, model: Any, *, args: Any = None, kwargs: Any = None) -> Any:
    """Call a copy of the model as the program did; return its output."""
    torch: Any = sys.modules["torch"]
    given = with_tensors(call.args if args is None else args, _fresh)
    words = with_tensors(call.kwargs if kwargs is None else kwargs, _fresh)
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name in call.buffers and buffer.shape == call.buffers[name].shape:
                buffer.copy_(call.buffers[name])
    modes = set(call.training)
    for name, module in model.named_modules():
        module.training = name in modes
    random_states.restore(call.random)
    with torch.enable_grad(), as_cast(call.cast):
        return model(*given, **words)


def _fresh(tensor: Any) -> Any:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def digest(output: Any) -> float:
    """Return one number for the values of an output, of which the numbers of a DTensor's shards are parts."""
    torch: Any = sys.modules["torch"]
    total = 0.0
    with torch.no_grad():
        for place_, tensor in enumerate(tensors_in(output), 1):
            if not tensor.is_floating_point() or tensor.layout is not torch.strided:
                continue
            own = tensor.detach()
            if hasattr(own, "device_mesh"):
                if any(p.is_partial() for p in own.placements):
                    return float("nan")  # the sizes of parts tell nothing of their sum
                own = own.to_local()
            total += place_ * float(own.double().abs().sum())
    return total


def autocast_state() -> list[tuple[str, bool, Any]]:
    """Return (device type, whether enabled, type) of autocast."""
    torch: Any = sys.modules["torch"]
    kinds = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    return [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in kinds]


@contextlib.contextmanager
def as_cast(state: list[tuple[str, bool, Any]]) -> Iterator[None]:
    """Have autocast in this state."""
    torch: Any = sys.modules["torch"]
    with contextlib.ExitStack() as stack:
        for kind, enabled, dtype in state:
            if kind == "cuda" and not torch.cuda.is_available():
                continue
            stack.enter_context(torch.autocast(kind, dtype=dtype, enabled=enabled))
        yield


def place(frame: FrameType | None) -> tuple[str, int]:
    """Return file and line of the innermost frame of the user's own code, or ("", 0)."""
    while frame is not None and _is_foreign(frame):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)


def _outside(root: Any, frame: FrameType | None) -> FrameType | None:
    """Return the user's frame that calls a model: past methods of a larger module that the user calls directly."""
    torch: Any = sys.modules["torch"]
    while frame is not None and _is_foreign(frame):
        frame = frame.f_back
    while frame is not None and frame.f_back is not None and not _is_foreign(frame.f_back):
        owner = frame.f_locals.get("self")
        if not isinstance(owner, torch.nn.Module) or all(part is not root for part in owner.modules()):
            break
        frame = frame.f_back
    return frame


def _is_foreign(frame: FrameType) -> bool:
    return is_library(frame.f_code.co_filename) or "/dtdebug/" in frame.f_code.co_filename


def _arguments(frame: FrameType, inputs: Any) -> tuple[Any, Any]:
    """Return the arguments of a call; torch shows hooks only the positional ones, its own frame has all."""
    caller: FrameType | None = frame
    for _ in range(4):
        if caller is None:
            break
        if caller.f_code.co_name == "_call_impl":
            found = caller.f_locals
            return found.get("args", inputs), dict(found.get("kwargs") or {})
        if caller.f_code.co_name == "inner" and "args" in caller.f_locals and "kwargs" in caller.f_locals:
            found = caller.f_locals
            return found["args"], dict(found["kwargs"] or {})
        caller = caller.f_back
    return inputs, {}


def _sharding(module: Any) -> str:
    if any(kind.__name__ == "FSDPModule" for kind in type(module).__mro__):
        return "fully_shard"
    if any(hasattr(p, "device_mesh") for p in module.parameters()):
        return "dtensor"
    return ""
