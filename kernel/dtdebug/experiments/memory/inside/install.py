"""Runs one rank on tensors that have sizes and no data, until its second optimizer step, and writes the peak.

Groups send nothing, as in a rehearsal. What the program puts on a GPU stays on the CPU's name: sizes are the same.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from dtdebug.experiments.collectives.inside import dispatcher_hook, fake_groups
from dtdebug.experiments.collectives.inside.other_device import leave_out_data, pretend
from dtdebug.experiments.memory.inside.live_tensors import LiveTensors, dispatch_mode
from dtdebug.experiments.repeat.training_steps import TrainingSteps
from dtdebug_taxonomy.stacks.frames import is_library

_STEPS = 2
"""Steps to run: in the second one the optimizer's state is there from the beginning. What it leaves is looked for in
the fourth, if that comes soon: some programs hold the step before."""
_LEAST, _TIMES = 5.0, 1.0
"""Seconds to wait for the fourth step, and times the seconds until the second one, whichever is more."""


def begin(told: dict[str, Any], torch: Any) -> None:
    """Start the rehearsal; if that fails, exit, since the program must not run as a normal rank."""
    try:
        rank, world = fake_groups.my_environment()
        fake_groups.prepare(torch, rank, world)
        dispatcher_hook.install(torch)
        _Run(Path(str(told["folder"])), rank, torch).start(real=bool(told.get("real")))
    except Exception as error:
        raise SystemExit(f"the rehearsal can't begin: {type(error).__name__}: {error}") from None


class _Run:
    """Run of this rank."""

    def __init__(self, folder: Path, rank: int, torch: Any) -> None:
        self._folder, self._rank, self._torch = folder, rank, torch
        self._live = LiveTensors(torch)
        self._depth, self._steps, self._batch = 0, 0, 0
        self._roots: dict[int, Any] = {}
        self._hooked: set[int] = set()
        self._found: dict[str, Any] = {}
        self._begun = time.monotonic()
        self._graded = False
        """A backward pass has run since the last step; gradients have no values here."""
        self._own: list[Any] = []
        """The optimizer of the first step, once for each of its steps."""
        self._inputs: dict[int, int] = {}
        """Module -> bytes of the first input of its last pass."""

    def start(self, *, real: bool) -> None:
        """Install the hooks, and let all further tensors be without data."""
        torch, live = self._torch, self._live
        pretend(torch)
        leave_out_data(torch)
        modules: Any = sys.modules["torch.nn.modules.module"]
        modules.register_module_parameter_registration_hook(lambda m, n, p: live.mark(p, "parameters"))
        modules.register_module_buffer_registration_hook(lambda m, n, b: live.mark(b, "buffers"))
        modules.register_module_forward_pre_hook(self._enters)
        modules.register_module_forward_hook(self._leaves, always_call=True)
        steps = TrainingSteps(self._steps_begin, self._steps_end, lambda _: self._graded)
        steps.hook(sys.modules["torch.optim.optimizer"])
        for name in ("backward", "grad"):
            setattr(torch.autograd, name, self._in_phase(getattr(torch.autograd, name), "backward"))
        names: Any = importlib.import_module("torch.distributed._tools.mod_tracker").ModTracker()
        names.__enter__()
        live.modules = names
        if not real:
            fake: Any = importlib.import_module("torch._subclasses.fake_tensor")
            fake.FakeTensorMode(allow_non_fake_inputs=True).__enter__()
        dispatch_mode(torch, live, _site).__enter__()

    def _in_phase(self, original: Any, phase: str) -> Any:
        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            before, self._live.phase = self._live.phase, phase
            self._graded = self._graded or phase == "backward"
            try:
                return original(*args, **kwargs)
            finally:
                self._live.phase = "other" if before == "forward" else before

        return run

    def _enters(self, module: Any, args: Any) -> None:
        self._depth += 1
        if args and isinstance(args[0], self._torch.Tensor):
            self._inputs[id(module)] = args[0].numel() * args[0].element_size()
        if self._live.phase == "other" and self._torch.is_grad_enabled():
            self._live.phase = "forward"
        if self._depth == 1 and self._torch.is_grad_enabled():
            self._notice(module, args)

    def _leaves(self, module: Any, args: Any, output: Any) -> None:
        self._depth = max(0, self._depth - 1)

    def _notice(self, root: Any, args: Any) -> None:
        """Notice the parameters of a model, which may have moved since they were made."""
        tensor = next((a for a in args if isinstance(a, self._torch.Tensor) and a.ndim), None)
        self._batch = self._batch or (int(tensor.shape[0]) if tensor is not None else 0)
        self._roots[id(root)] = root
        for parameter in root.parameters():
            self._live.mark(parameter, "parameters")
            if parameter.requires_grad and parameter.is_leaf and id(parameter) not in self._hooked:
                self._hooked.add(id(parameter))
                parameter.register_post_accumulate_grad_hook(lambda p: self._live.mark(p.grad, "gradients"))
        for buffer in root.buffers():
            self._live.mark(buffer, "buffers")

    def _steps_begin(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if len(self._own) > _STEPS and optimizer is self._own[0] and self._found:
            self._write({"kept": self._live.kept(), "holder": _holder(self._torch, self._live.is_kept)})
            self._end()
        self._live.phase, self._depth = "optimizer", 0
        for parameter in _parameters(optimizer):
            self._live.mark(parameter, "parameters")
            self._live.mark(parameter.grad, "gradients")

    def _steps_end(self, optimizer: Any) -> None:
        self._live.phase, self._graded = "other", False
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                self._live.mark(value, "optimizer")
        self._steps += 1
        if not self._own or optimizer is self._own[0]:
            self._own.append(optimizer)
            self._live.notes_birth = len(self._own) == 1
        if self._steps == 1:
            self._live.restart()
        if self._steps == _STEPS:
            held = _parameters(optimizer)
            self._write({
                "parameters": len(held), "numbers": sum(p.numel() for p in held),
                "sharded": any(hasattr(p, "_local_tensor") or hasattr(p, "_fsdp_flattened") for p in held),
                "layers": _layers(self._torch, self._roots.values(), self._inputs),
            })  # fmt: skip
            ends = threading.Timer(max(_LEAST, _TIMES * (time.monotonic() - self._begun)), self._end)
            ends.daemon = True
            ends.start()

    def _end(self) -> None:
        sys.stdout.flush()
        os._exit(0)  # nothing of it may be saved

    def _write(self, more: dict[str, Any]) -> None:
        """Write what is known: the peak of the second step, then what of it is still there in the fourth."""
        self._found = self._found or {"steps": self._steps, "batch": self._batch, **self._live.result()}
        self._found |= more
        path = self._folder / f"memory-{self._rank}.json"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(self._found, file)


def _parameters(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _layers(torch: Any, roots: Any, inputs: dict[int, int]) -> dict[str, tuple[int, int]]:
    """Return the longest list of equal layers: its name as the module tracker has it -> (number, bytes of inputs)."""
    found: dict[str, tuple[int, int]] = {}
    for root in roots:
        for name, module in root.named_modules():
            if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)) and len(module) > 1:
                kinds = {type(m) for m in module}
                if len(kinds) == 1 and next(iter(kinds)).__module__ != "torch.nn.modules.linear":
                    given = sum(inputs.get(id(m), 0) for m in module)
                    found[f"{type(root).__name__}.{name}".rstrip(".")] = len(module), given
    return dict(sorted(found.items(), key=lambda row: -row[1][0])[:1])


def _holder(torch: Any, is_kept: Callable[[Any], bool]) -> str:
    """Return the user's variable, or attribute, that holds such a tensor in a container; "" if none is seen."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None:
        if not is_library(frame.f_code.co_filename):
            for name, value in list(frame.f_locals.items())[:400]:
                own = {f"{name}.{key}": v for key, v in list(getattr(value, "__dict__", {}).items())[:256]}
                for path, one in {name: value, **(own if not isinstance(value, torch.nn.Module) else {})}.items():
                    if isinstance(one, _CONTAINERS) and _holds(torch, one, is_kept, 4):
                        return path
        frame = frame.f_back
    return ""


def _holds(torch: Any, value: Any, is_kept: Callable[[Any], bool], depth: int) -> bool:
    if isinstance(value, torch.Tensor):
        return is_kept(value)
    if not depth or not isinstance(value, _CONTAINERS):
        return False
    rows = [*value.values()] if isinstance(value, dict) else [*value]
    return any(_holds(torch, one, is_kept, depth - 1) for one in rows[-4096:])


_CONTAINERS = (list, tuple, dict, deque)


def _site() -> tuple[str, int]:
    """Return the innermost place in the user's own code, or ("", 0)."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno or 0) if frame is not None else ("", 0)
