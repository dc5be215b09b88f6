"""Checks each loss and gradient of a rank; the first that is not finite is traced to where it arises, once."""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from dtdebug.experiments.nonfinite.inside.loss_graph import origin_in_loss
from dtdebug.experiments.nonfinite.inside.trace import Repetition, bad_rows, batch_of, is_finite
from dtdebug.experiments.repeat import random_states
from dtdebug.experiments.repeat.after_import import after_import, complain, is_launcher
from dtdebug.experiments.repeat.calls import Call, CallRecorder, place
from dtdebug.experiments.repeat.closures import when_complete
from dtdebug.experiments.repeat.tensors import tensors_in
from dtdebug.experiments.repeat.training_steps import TrainingSteps

FOLDER = "nan"
_CALLS = 64
"""Maximum calls of a step that are kept."""


class NonFinite:
    """Observer of one process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._pid = folder, os.getpid()
        self._calls = CallRecorder(copies=False)
        self._calls.failed, self._calls.passed = self._fails, self._note_pass
        self._done = False
        self._steps = 0
        self._scaled = False
        self._before = (0.0, 0.0)
        """Norm of the gradients and learning rate of the previous step."""
        self._samples: list[int] = []
        self._spent = 0.0
        self._calls.start()
        atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        if not self._done and os.getpid() == self._pid:
            with suppress(Exception):
                self._put({"ended": self._steps, "spent": round(self._spent, 4)})

    def patches(self) -> dict[str, Callable[[ModuleType], None]]:
        """Return module -> function to call once it is imported."""
        return {
            "torch.autograd": self._autograd,
            "torch.optim.optimizer": self._optimizer,
            "torch.amp.grad_scaler": self._scaler,
            "torch.utils.data.dataloader": self._loader,
        }

    def patch(self, name: str, module: ModuleType) -> None:
        """Patch a module, or end the search with a line."""
        try:
            self.patches()[name](module)
        except Exception as error:
            self._fails(error)

    def _fails(self, error: Exception) -> None:
        if not self._done:
            self._end()
            self._put({"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"})
            complain(f"nan: ended ({type(error).__name__}: {error})")

    def _end(self) -> None:
        self._done = True
        self._calls.stop()
        self._calls.clear()

    def _put(self, row: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            return
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        ready = c10d is not None and c10d.is_initialized()
        rank = c10d.get_rank() if c10d is not None and ready else int(os.environ.get("RANK", "0") or 0)
        world = c10d.get_world_size() if c10d is not None and ready else 1
        row = {"rank": rank, "world": world, "host": os.uname().nodename, **row}
        handle = os.open(self._folder / f"{self._pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(handle, "ab") as file:  # noqa: PTH123 - an open handle
            file.write((json.dumps(row, separators=(",", ":"), default=str) + "\n").encode())

    def _guard(self, do: Callable[[], Any]) -> None:
        if self._done:
            return
        begun = time.perf_counter()
        try:
            do()
        except Exception as error:
            self._fails(error)
        self._spent += time.perf_counter() - begun

    def _note_pass(self, call: Call, name: str, module: Any) -> None:
        if name == "" and len(self._calls.calls) > _CALLS:
            del self._calls.calls[0]

    def _autograd(self, module: ModuleType) -> None:
        backward = module.backward

        @functools.wraps(backward)
        def checking(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if self._done or sys.modules["torch"].compiler.is_compiling():
                return backward(tensors, *args, **kwargs)
            loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
            frame = sys._getframe(1)  # noqa: SLF001 - documented
            if not self._scaled:
                self._guard(lambda: self._check_loss(loss, frame))
            result = backward(tensors, *args, **kwargs)
            self._calls.backwards += 1
            return result

        module.backward = checking  # type: ignore[attr-defined]

    def _scaler(self, module: ModuleType) -> None:
        scale = module.GradScaler.scale

        @functools.wraps(scale)
        def scaling(scaler: Any, outputs: Any) -> Any:
            if scaler.is_enabled() and not self._done:
                self._scaled = True  # a scaled loss may be infinite on purpose
                frame = sys._getframe(1)  # noqa: SLF001 - documented
                for loss in tensors_in(outputs):
                    self._guard(functools.partial(self._check_loss, loss, frame))
            return scale(scaler, outputs)

        module.GradScaler.scale = scaling

    def _loader(self, module: ModuleType) -> None:
        kind = module._BaseDataLoaderIter  # noqa: SLF001 - all loaders' iterators
        index, following = kind._next_index, kind.__next__  # noqa: SLF001
        waiting: dict[int, deque[Any]] = {}

        @functools.wraps(index)
        def _next_index(iterator: Any) -> Any:
            found = index(iterator)
            if not self._done and isinstance(found, list):
                waiting.setdefault(id(iterator), deque(maxlen=4096)).append(found)
            return found

        @functools.wraps(following)
        def __next__(iterator: Any) -> Any:  # noqa: N807
            result = following(iterator)
            rows = waiting.get(id(iterator))
            self._samples = rows.popleft() if rows else []
            return result

        kind._next_index, kind.__next__ = _next_index, __next__  # noqa: SLF001

    def _optimizer(self, module: ModuleType) -> None:
        def begins(optimizer: Any, args: Any, kwargs: Any) -> Any:
            if self._done:
                return None
            return when_complete(args, kwargs, lambda: self._guard(lambda: self._check_gradients(optimizer)))

        def ends(_: Any) -> None:
            self._steps += 1
            self._calls.clear()

        TrainingSteps(begins, ends).hook(module)

    def _check_loss(self, loss: Any, frame: Any) -> None:
        if not hasattr(loss, "grad_fn") or loss.numel() != 1 or is_finite(loss):
            return
        file, line = place(frame)
        told: dict[str, Any] = {"trigger": "loss", "value": str(float(loss.detach())), "at": [file, line]}
        self._calls.stop()  # what follows is ours
        with random_states.unchanged():
            found = self._in_forward()
            if found is None and loss.grad_fn is not None:
                nodes = {n for call in self._calls.calls for n in call.nodes}
                batch = batch_of(self._calls.calls[-1]) if self._calls.calls else 0
                found = {"in": "loss", **origin_in_loss(loss, nodes, batch), "file": file, "line": line}
        self._tell(told, found)

    def _check_gradients(self, optimizer: Any) -> None:
        torch: Any = sys.modules["torch"]
        held = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        grads = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in held]
        grads = [g.detach() for g in grads if g.is_floating_point() and g.layout is torch.strided and g.numel()]
        if not grads:
            return
        norms = torch.stack([n.to(grads[0].device, torch.float64) for n in torch._foreach_norm(grads)])  # noqa: SLF001
        total = float(norms.norm())
        rate = optimizer.param_groups[0].get("lr", 0.0)
        if torch.isfinite(norms).all() or all(is_finite(g) for g in grads):
            self._before = (total, float(rate))
            return
        told: dict[str, Any] = {"trigger": "gradient", "value": str(total), "at": ["", 0]}
        self._calls.stop()
        with random_states.unchanged():
            found = self._in_forward() or self._in_backward()
        self._tell(told, found)

    def _tell(self, told: dict[str, Any], found: dict[str, Any] | None) -> None:
        call = self._calls.calls[-1] if self._calls.calls else None
        inputs = [t for c in self._calls.calls for t in (*tensors_in(c.args), *tensors_in(c.kwargs))]
        rows = (found or {}).get("rows", [])
        device = str(next(iter(call.root.parameters())).device) if call is not None else ""
        self._put({
            **told,
            "step": self._steps + 1,
            "found": found,
            "inputs": all(is_finite(t) for t in inputs),
            "samples": [self._samples[r] for r in rows if r < len(self._samples)] if self._samples else [],
            "device": device,
            "before": list(self._before),
            "sharded": call is not None and call.wrapper in {"fully_shard", "dtensor", "FullyShardedDataParallel"},
            "called": [call.file, call.line] if call is not None else ["", 0],
            "spent": round(self._spent, 4),
        })  # fmt: skip
        self._end()

    def _in_forward(self) -> dict[str, Any] | None:
        """Return where the forward pass of a recorded call is first not finite; None if it is finite throughout."""
        for call in self._calls.calls:
            if call.wrapper in {"fully_shard", "dtensor", "FullyShardedDataParallel"}:
                continue
            again = Repetition(call)
            again.run()
            origin = again.origin()
            if origin is None:
                continue
            batch = batch_of(call)
            rows = next((r for t in origin.results if (r := bad_rows(t, batch))), [])
            return {
                "in": "forward", "op": origin.op, "module": origin.module, "class": again.kinds.get(origin.module, ""),
                "file": origin.file or call.file, "line": origin.line or call.line, "kind": origin.kind, "rows": rows,
                "largest": origin.largest, "smallest": origin.smallest, "dtype": origin.dtype,
                "masked": bool(origin.sources),
            }  # fmt: skip
        return None

    def _in_backward(self) -> dict[str, Any] | None:
        for call in self._calls.calls:
            if call.wrapper in {"fully_shard", "dtensor", "FullyShardedDataParallel"} or not any(call.grads):
                continue
            bad = [g for held in call.grads for g in held.values() if not is_finite(g)]
            batch = batch_of(call)
            if bad:
                return {"in": "loss backward", "rows": bad_rows(bad[0], batch), "file": call.file, "line": call.line}
            again = Repetition(call)
            again.run()
            found = again.backward()
            if found is not None:
                node, module, at = found
                op = node.rstrip("0123456789").removesuffix("Backward").lower()
                return {
                    "in": "backward", "op": op, "module": module, "class": again.kinds.get(module, ""),
                    "file": at[0] or call.file, "line": at[1] or call.line, "rows": [],
                }  # fmt: skip
        return None


def begin(told: dict[str, Any], torch: ModuleType) -> None:
    """Check the steps of this process, unless it is a launcher."""
    if not is_launcher():
        seeking = NonFinite(Path(told["watched"]) / FOLDER)
        after_import(seeking.patches(), seeking.patch)
