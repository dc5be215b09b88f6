"""Repeats a call of a model, and finds the operation whose result is the first that is not finite."""

from __future__ import annotations

import sys
from typing import Any

from dtdebug.experiments.repeat.calls import Call, place, repeat
from dtdebug.experiments.repeat.module_copy import ModuleCopy
from dtdebug.experiments.repeat.tensors import tensors_in

_EVENTS, _ROWS = 4096, 8
_MASKS = (
    "masked_fill",
    "where",
    "full",
    "fill",
    "scalar_tensor",
    "lift_fresh",
    "index_put",
    "triu",
    "tril",
    "_to_copy",
)
_THROUGH = (
    "clone",
    "view",
    "detach",
    "expand",
    "slice",
    "select",
    "transpose",
    "permute",
    "unsqueeze",
    "t",
    "_to_copy",
)


class Event:
    """One operation with a result that is not finite."""

    def __init__(self, op: str, module: str, at: tuple[str, int], results: list[Any], sources: list[Event]) -> None:
        self.op, self.module, self.file, self.line = op, module, at[0], at[1]
        self.results, self.sources = results, sources
        self.largest, self.smallest, self.dtype, self.kind = 0.0, 0.0, "", ""
        """Extremes of its finite inputs, their type; nan or inf."""


def is_finite(tensor: Any) -> bool:
    """True if no value is NaN or infinite; tensors of integers are."""
    torch: Any = sys.modules["torch"]
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.layout is not torch.strided:
        return True
    return bool(torch.isfinite(tensor.detach()).all())


def has_nan(tensor: Any) -> bool:
    """True if a value is NaN."""
    torch: Any = sys.modules["torch"]
    return bool(torch.isnan(tensor.detach()).any())


class Repetition:
    """A repeated call on a copy of its model."""

    def __init__(self, call: Call) -> None:
        self.call = call
        copied = ModuleCopy(call.root)
        copied.set_forward(call.forward)
        self.model = copied.module
        self.events: list[Event] = []
        self._last: dict[int, Event] = {}
        self._modules = [""]
        self.names = {id(m): n for n, m in self.model.named_modules()}
        self.kinds = {n: type(m).__name__ for n, m in self.model.named_modules()}
        self.outputs: list[Any] = []
        self.nodes: dict[Any, str] = {}
        """Node of the graph -> module."""

    def run(self) -> None:
        """Run the forward pass."""
        torch: Any = sys.modules["torch"]
        for name, tensor in (*self.model.named_parameters(), *self.model.named_buffers()):
            if not is_finite(tensor):
                self._note(
                    "weight" if isinstance(tensor, torch.nn.Parameter) else "buffer", name, [tensor], [], ("", 0)
                )
        handles = []
        for name, module in self.model.named_modules():
            handles += [
                module.register_forward_pre_hook(self._entering(name)),
                module.register_forward_hook(self._leaving(name), always_call=True),
            ]
        try:
            with _tracing(self), torch.autograd.set_detect_anomaly(True, check_nan=False):
                self.outputs = list(tensors_in(repeat(self.call, self.model)))
        finally:
            for handle in handles:
                handle.remove()

    def _entering(self, name: str) -> Any:
        def enter(_module: Any, inputs: Any) -> None:
            self._modules.append(name)
            if not name:
                for tensor in (*tensors_in(inputs),):
                    if not is_finite(tensor):
                        self._note("input", "", [tensor], [], ("", 0))

        return enter

    def _leaving(self, name: str) -> Any:
        def leave(_module: Any, _inputs: Any, output: Any) -> None:
            self._modules.pop()
            todo = [t.grad_fn for t in tensors_in(output) if t.grad_fn is not None] if output is not None else []
            while todo and len(self.nodes) < 200_000:
                node = todo.pop()
                if node is None or node in self.nodes:
                    continue
                self.nodes[node] = name
                todo += [row[0] for row in node.next_functions]

        return leave

    def _note(self, op: str, module: str, results: list[Any], sources: list[Event], at: tuple[str, int]) -> Event:
        event = Event(op, module, at, results, sources)
        event.kind = "nan" if any(has_nan(t) for t in results) else "inf"
        if len(self.events) < _EVENTS:
            self.events.append(event)
        for tensor in results:
            self._last[id(tensor)] = event
        return event

    def after(self, function: Any, given: list[Any], results: list[Any]) -> None:
        """Note an operation, if a result of it is not finite."""
        bad = [t for t in results if not is_finite(t)]
        if not bad:
            return
        name = str(function).split(".")[1] if "." in str(function) else str(function)
        sources = []
        for tensor in given:
            event = self._last.get(id(tensor))
            if event is not None and any(t is tensor for t in event.results) and event not in sources:
                sources.append(event)
        event = self._note(name, self._modules[-1], bad, sources, place(sys._getframe(2)))  # noqa: SLF001 - documented
        floats = [t.detach() for t in given if t.is_floating_point() and t.numel()]
        if floats and not sources:
            event.largest = max(float(t.max()) for t in floats)
            event.smallest = min(float(t.min()) for t in floats)
            event.dtype = str(floats[0].dtype).removeprefix("torch.")

    def origin(self) -> Event | None:
        """Return the operation from which the bad output comes: constants that only mask are passed over."""
        final = [e for t in self.outputs if (e := self._last.get(id(t))) is not None and any(r is t for r in e.results)]
        if not final:
            return None
        path = [final[0]]
        while path[-1].sources and len(path) < _EVENTS:
            path.append(min(path[-1].sources, key=lambda e: (e.kind != "nan", self.events.index(e))))
        path.reverse()
        first = path[0]
        masks = first.kind == "inf" and (
            any(first.op.startswith(m) for m in _MASKS) or first.op in {"buffer", "input"} or first.op in _THROUGH
        )
        if masks:
            return next((e for e in path if e.kind == "nan"), first)
        return first

    def backward(self) -> tuple[str, str, tuple[str, int]] | None:
        """Return node, module and place of the first step back with finite inputs whose result is not; None if none."""
        torch: Any = sys.modules["torch"]
        found: list[tuple[str, str, tuple[str, int]]] = []
        handles = [node.register_hook(self._checking(node, found)) for node in self.nodes]
        try:
            for held in self.call.grads:
                pairs = [(self.outputs[i], g) for i, g in held.items() if i < len(self.outputs)]
                pairs = [(o, g) for o, g in pairs if o.requires_grad]
                if pairs and not found:
                    torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs], retain_graph=True)
        finally:
            for handle in handles:
                handle.remove()
        return found[0] if found else None

    def _checking(self, node: Any, found: list[tuple[str, str, tuple[str, int]]]) -> Any:
        name, module = type(node).__name__, self.nodes[node]

        def check(inputs: Any, outputs: Any) -> None:
            torch: Any = sys.modules["torch"]
            if found or not inputs:
                return
            if all(t is None or is_finite(t) for t in outputs) and not all(
                t is None or not isinstance(t, torch.Tensor) or is_finite(t) for t in inputs
            ):
                found.append((name, module, _of_traceback(node.metadata.get("traceback_", []))))

        return check


def _of_traceback(rows: list[str]) -> tuple[str, int]:
    """Return the innermost user line of a traceback that anomaly detection keeps."""
    from dtdebug_taxonomy.stacks.frames import is_library

    for row in reversed(rows):
        head = row.strip().split("\n", 1)[0]
        if head.startswith('File "') and '", line ' in head:
            file, _, rest = head[6:].partition('", line ')
            number = rest.split(",", 1)[0]
            if number.isdigit() and not is_library(file) and "/dtdebug/" not in file:
                return file, int(number)
    return "", 0


def bad_rows(tensor: Any, batch: int) -> list[int]:
    """Return the samples with values that are not finite; [] if the first dimension is not the batch, or all are."""
    torch: Any = sys.modules["torch"]
    if not batch or tensor.ndim < 1 or len(tensor) != batch:
        return []
    bad = ~torch.isfinite(tensor.detach().reshape(batch, -1)).all(dim=1)
    rows: list[int] = bad.nonzero().flatten().tolist()
    return rows[:_ROWS] if len(rows) < batch or batch == 1 else []


def batch_of(call: Call) -> int:
    """Return the number of samples of a call: the length of its first tensor."""
    for tensor in (*tensors_in(call.args), *tensors_in(call.kwargs)):
        if tensor.ndim:
            return len(tensor)
    return 0


def _tracing(owner: Repetition) -> Any:
    mode: Any = sys.modules["torch.utils._python_dispatch"].TorchDispatchMode

    class Tracing(mode):  # type: ignore[misc]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = str(function)
            if name.startswith(("c10d", "_c10d_functional", "symm_mem")):
                raise RuntimeError(f"the model communicates in its forward pass ({name})")
            result = function(*args, **(kwargs or {}))
            owner.after(function, [*tensors_in(args), *tensors_in(kwargs or {})], list(tensors_in(result)))
            return result

    return Tracing()
