"""Notes one step of a rank: its calls, losses, local gradients of each backward pass, and gradients at the step."""

from __future__ import annotations

import sys
import zlib
from typing import Any

from dtdebug.experiments.parity.inside.losses import is_scaled_into, terms_of
from dtdebug.experiments.parity.inside.parts import chosen_entries, part_of, place_of
from dtdebug.experiments.repeat.calls import Call, CallRecorder, place
from dtdebug.experiments.repeat.tensors import tensors_in
from dtdebug_taxonomy.stacks.frames import is_library

_LOOSE = 64
"""Maximum parameters outside of modules."""
_ROWS, _COLUMNS = 512, 1024
"""Maximum samples of a batch to hash, and about how many values of each."""


class Window:
    """Notes from the end of one optimizer step to the beginning of the next."""

    def __init__(self) -> None:
        self.calls = CallRecorder(copies=True, digests=True)
        self.calls.begun, self.calls.passed = self._begin_call, self._note_pass
        self.names: dict[int, str] = {}
        """Id of a parameter that an optimizer holds -> name."""
        self._held: dict[str, Any] = {}
        """Name -> parameter, which keeps its id in use."""
        self._hooked: dict[int, Any] = {}
        self._roots: dict[int, str] = {}
        self.base: dict[str, Any] = {}
        self.local: dict[str, list[Any]] = {}
        """Name -> this rank's gradient of each backward pass since it was cleared; None where there was none."""
        self.after: dict[str, Any] = {}
        self.cleared: dict[str, list[int]] = {}
        self.losses: list[dict[str, Any]] = []
        self.frozen: set[str] = set()
        self.weights: dict[str, Any] = {}
        """Whole values of sharded parameters, as the forward pass had them."""
        self.clipped = ""
        self.compared = False
        self._kept: tuple[bool, bool] | None = None
        """Settings of torch's anomaly mode, which keeps the line of each operation."""
        self.uncovered = ""
        """Kind of training that is not covered, if it is one."""
        self.exchanged: list[Any] = []
        """Function that gathered values from other ranks, file and line."""
        self.sums: list[dict[str, Any]] = []
        """Sums over all ranks of values that have a gradient."""
        self._summed: list[tuple[Any, dict[str, Any]]] = []
        self.keeps_weights = False
        self.sharded: set[str] = set()
        self.layers: dict[str, Any] = {}
        """Name -> parameter, or a copy, of which this rank computes with a part only: tensor parallelism."""
        self.partial: set[str] = set()
        """Parameters whose gradient must be summed over the ranks that share a model."""
        self.cuts = False
        """The program declares that this rank has a part of an input."""
        self.order: list[str] = []
        self.passes: list[Any] = []
        """Calls of a pipeline's schedule."""
        self.passed_at: tuple[str, int] | None = None

    def open(self) -> None:
        """Begin."""
        self.calls.start()

    def close(self) -> None:
        """Remove all hooks."""
        self.calls.stop()
        if self._kept:
            sys.modules["torch"].set_anomaly_enabled(*self._kept)
            self._kept = None
        for handle in self._hooked.values():
            handle.remove()
        self._hooked = {}

    def _prefix(self, call: Call) -> str:
        if id(call.root) not in self._roots:
            first = not self._roots
            self._roots[id(call.root)] = "" if first else f"{_variable(call.root, len(self._roots))}."
        return self._roots[id(call.root)]

    def prefix_of(self, root: Any) -> str:
        """Return the prefix of a model's parameters."""
        return self._roots.get(id(root), "")

    def _begin_call(self, call: Call) -> None:
        self.uncovered = self.uncovered or _why_uncovered(call)
        if self._kept is None:
            torch: Any = sys.modules["torch"]
            self._kept = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
            torch.set_anomaly_enabled(True, all(self._kept))
        prefix = self._prefix(call)
        reassembles = any(kind.__name__ == "FSDPModule" for m in call.root.modules() for kind in type(m).__mro__)
        for name, parameter in call.root.named_parameters():
            if not parameter.requires_grad:
                self.frozen.add(prefix + name)
            self.names.setdefault(id(parameter), prefix + name)
            self._held.setdefault(prefix + name, parameter)
            if hasattr(parameter, "device_mesh"):
                self.sharded.add(prefix + name)
                if not reassembles:
                    self._layer(self.names[id(parameter)], parameter)
            elif parameter.requires_grad:
                self._hook(self.names[id(parameter)], parameter)

    def _layer(self, name: str, parameter: Any) -> None:
        if parameter.device_mesh.ndim > 1:
            self.uncovered = self.uncovered or "a model of DTensors on a mesh of several dimensions"
        self._hook(name, parameter)
        self.layers[name] = parameter if id(parameter) in self.names else parameter.detach().clone()

    @property
    def group(self) -> list[int]:
        """Ranks that share one model by tensor parallelism; [] without it."""
        found = {tuple(p.device_mesh.mesh.flatten().tolist()) for p in self.layers.values()}
        if len(found) > 1:
            self.uncovered = self.uncovered or "a model whose layers are sharded over different ranks"
        return list(next(iter(found), ()))

    def _note_pass(self, call: Call, name: str, module: Any) -> None:
        if not self.sharded:
            return
        prefix = self._prefix(call) + (f"{name}." if name else "")
        for own, parameter in module.named_parameters():  # a parent may use its children's without calling them
            full = prefix + own
            if full not in self.sharded or parameter is self._held.get(full):
                continue
            if hasattr(parameter, "device_mesh"):
                if full not in self.layers and own in module._parameters:  # noqa: SLF001 - not those of children
                    self._layer(full, parameter)
                continue
            if parameter.requires_grad:
                self._hook(full, parameter)
            if self.keeps_weights and full not in self.weights:
                self.weights[full] = parameter.detach().clone()

    def _hook(self, name: str, parameter: Any) -> None:
        if id(parameter) in self._hooked or not parameter.requires_grad:
            return

        def note(gradient: Any) -> None:
            try:
                rows = self.local.setdefault(name, [])
                while len(rows) <= self.calls.backwards:
                    rows.append(None)
                now = chosen_entries(gradient)
                if hasattr(gradient, "device_mesh") and place_of(gradient)[1]:
                    self.partial.add(name)
                rows[-1] = now if rows[-1] is None else rows[-1] + now
            except Exception as error:
                self.calls.failed(error)

        self._hooked[id(parameter)] = parameter.register_hook(note)
        self.order.append(name)

    def note_sum(self, tensor: Any, at: tuple[str, int]) -> None:
        """Note a sum over the ranks, and the gradient that the loss gives it."""
        row = {"file": at[0], "line": at[1], "shape": list(tensor.shape)}
        self._summed.append((tensor.grad_fn, row))

        def note(gradient: Any) -> None:
            try:
                if row not in self.sums:
                    row["norm"] = float(gradient.norm())
                    self.sums.append(row)
            except Exception as error:
                self.calls.failed(error)

        tensor.register_hook(note)

    def before_backward(self, loss: Any, frame: Any) -> None:
        """Note the loss, and which gradients have been cleared since the last pass."""
        for name, parameter in self._held.items():
            now = self.gradient(parameter)
            if now is None or not bool((now.nan_to_num() != 0).any()):
                self.base.pop(name, None)
                if name in self.after and bool((self.after[name].nan_to_num() != 0).any()):
                    lost = [n for n, v in enumerate(self.local.get(name, [])) if v is not None]
                    self.cleared.setdefault(name, []).extend(lost)
                self.local[name] = [None] * self.calls.backwards
            elif name not in self.after and name not in self.base:
                self.base[name] = now
        if hasattr(loss, "grad_fn") and loss.grad_fn is not None and loss.numel() == 1:
            file, line = place(frame)
            row = {
                "file": file,
                "line": line,
                "terms": terms_of(loss, [node for node, _ in self._summed]),
                "value": float(loss.detach()),
            }
            self.losses.append(row)
            for node, summed in self._summed:
                summed.setdefault("scaled", is_scaled_into(loss, node))

    def after_backward(self) -> None:
        """Note the gradients that a backward pass has left."""
        self.calls.backwards += 1
        for name, parameter in self._held.items():
            now = self.gradient(parameter)
            if now is not None:
                self.after[name] = now

    def gradient(self, parameter: Any) -> Any:
        """Return the chosen entries of a parameter's gradient now, or None."""
        return None if parameter.grad is None else chosen_entries(parameter.grad)

    def at_step(self, optimizer: Any) -> dict[str, dict[str, Any]]:
        """Return what is known of each parameter of an optimizer that is about to step."""
        found = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                name = self.names.get(id(parameter))
                if name is None:
                    continue
                found[name] = {
                    "base": self.base.get(name),
                    "local": self.local.get(name, []),
                    "after": self.after.get(name),
                    "step": self.gradient(parameter),
                    "dtype": str(parameter.dtype),
                    "cleared": self.cleared.get(name, []),
                    "partial": name in self.partial,
                }
        return found

    def loose(self, optimizer: Any) -> list[dict[str, Any]]:
        """Return the parameters with a gradient that belong to no module that was called: shape, norm and variable."""
        held = [p for group in optimizer.param_groups for p in group["params"] if id(p) not in self.names]
        return [
            {"name": _variable_of(p), "shape": list(p.shape), "norm": float(p.grad.norm())}
            for p in held[:_LOOSE]
            if p.grad is not None and not hasattr(p, "device_mesh")
        ]

    def layer_parts(self) -> dict[str, dict[str, Any]]:
        """Return this rank's parts of the weights of sharded layers."""
        return {name: part_of(parameter) for name, parameter in self.layers.items()}


def _why_uncovered(call: Call) -> str:
    """Return what makes this call one that can't be compared; "" if it can."""
    if call.wrapper == "OptimizedModule" or any(hasattr(m, "_orig_mod") for m in call.root.modules()):
        return "a compiled model"
    if call.wrapper == "FullyShardedDataParallel" or any(
        type(m).__name__ == "FullyShardedDataParallel" for m in call.root.modules()
    ):
        return "FullyShardedDataParallel (the first version of FSDP)"
    kind = type(call.root).__name__
    if kind == "DeepSpeedEngine":
        return "DeepSpeed"
    return "Horovod" if "horovod.torch" in sys.modules else ""


def _variable(root: Any, number: int) -> str:
    """Return a name for another model: that of the user's variable, else of its class."""
    frame = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None:
        if frame.f_code.co_name in {"_call_impl", "_wrapped_call_impl"}:
            caller = frame.f_back
            while caller is not None and caller.f_code.co_name in ("_call_impl", "_wrapped_call_impl", "inner"):
                caller = caller.f_back
            held = {} if caller is None else {**caller.f_globals, **caller.f_locals}
            known = next((name for name, value in held.items() if value is root and name != "self"), "")
            return known or _path_within(root, held) or f"{type(root).__name__.lower()}{number}"
        frame = frame.f_back  # type: ignore[assignment]
    return f"{type(root).__name__.lower()}{number}"


def _variable_of(value: Any) -> str:
    """Return the name of the user's variable that holds a value, or ""."""
    frame = sys._getframe(1)  # noqa: SLF001 - documented
    while frame is not None:
        if not is_library(frame.f_code.co_filename) and "/dtdebug/" not in frame.f_code.co_filename:
            name = next((n for n, v in {**frame.f_globals, **frame.f_locals}.items() if v is value), "")
            if name:
                return name
        frame = frame.f_back  # type: ignore[assignment]
    return ""


def _path_within(root: Any, held: dict[str, Any]) -> str:
    """Return the path of a model within another one that a variable names."""
    torch: Any = sys.modules["torch"]
    for value in held.values():
        if isinstance(value, torch.nn.Module):
            path = next((name for name, module in value.named_modules() if module is root), "")
            if path:
                return path
    return ""


def rows_of(call: Call) -> list[int]:
    """Return hashes of the samples of a call's first input that has different ones."""
    torch: Any = sys.modules["torch"]
    for tensor in (*tensors_in(call.args), *tensors_in(call.kwargs)):
        if tensor.ndim > 1 and len(tensor) and tensor.layout is torch.strided and not tensor.is_complex():
            flat = tensor.detach()[:_ROWS].reshape(min(len(tensor), _ROWS), -1)
            if flat.shape[1] < 2 or bool((flat == flat[:, :1]).all()):
                continue
            some = flat[:, :: max(1, flat.shape[1] // _COLUMNS)].cpu().double()
            rows = [zlib.crc32(repr(row).encode()) for row in some.tolist()]
            if len(rows) == 1 or len(set(rows)) > 1:
                return rows
    return []
