"""Follows the steps of a rank and compares the chosen ones on one rank, through files: nothing communicates.

The first rank of a group waits at its step for the notes of the others, up to a bound; they do not wait for it.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from dtdebug.experiments.parity.inside import compare, layers, pipelines, recompute
from dtdebug.experiments.parity.inside.parts import part_of
from dtdebug.experiments.parity.inside.window import Window, rows_of
from dtdebug.experiments.repeat import random_states
from dtdebug.experiments.repeat.after_import import after_import, complain, is_launcher
from dtdebug.experiments.repeat.calls import place
from dtdebug.experiments.repeat.closures import when_complete
from dtdebug.experiments.repeat.tensors import is_plain, tensors_in
from dtdebug.experiments.repeat.training_steps import TrainingSteps

FOLDER = "parity"
_WAIT, _PAUSE = 30.0, 0.02
"""Seconds that the first rank waits for the others' notes of a step, and between two looks."""
_SHARE = 0.5
"""Maximum share of the free memory for what a recomputation holds."""
_GIVEN_UP = "given-up"
"""File that tells the ranks of other stages not to wait any longer."""
_GATHERS = ("all_gather", "all_gather_into_tensor", "all_to_all", "all_to_all_single")
_CLIPS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")


class Parity:
    """Observer of one process."""

    def __init__(self, folder: Path, steps: tuple[int, ...]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._steps = folder, steps
        self._taken = 0
        self._window: Window | None = None
        self._busy = False
        self._dead = False
        self._group: list[int] | None = None
        self._groups = 0
        """Number of groups of ranks of wrapped models."""
        self._spent = 0.0
        self._pid = os.getpid()
        self._open()

    def patches(self) -> dict[str, Callable[[ModuleType], None]]:
        """Return module -> function to call once it is imported."""
        return {
            "torch.autograd": self._autograd,
            "torch.optim.optimizer": self._optimizer,
            "torch.nn.utils.clip_grad": self._clip,
            "torch.amp.grad_scaler": self._scaler,
            "torch.nn.parallel.distributed": self._ddp,
            "torch.distributed.distributed_c10d": self._gathers,
            "torch.distributed.tensor._api": self._dtensors,
            "torch.distributed.pipelining.schedules": self._schedules,
        }

    def patch(self, name: str, module: ModuleType) -> None:
        """Patch a module, or end the comparison with a line."""
        try:
            self.patches()[name](module)
        except Exception as error:
            self._fails(error)

    def _fails(self, error: Exception) -> None:
        if self._dead:
            return
        self._dead = True
        if self._window is not None:
            with suppress(Exception):
                self._window.close()
        self._window = None
        self._put({"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}", "step": self._taken + 1})
        complain(f"parity: ended ({type(error).__name__}: {error})")

    def _put(self, row: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            return
        data = (json.dumps({"rank": _rank(), **row}, separators=(",", ":"), default=str) + "\n").encode()
        handle = os.open(self._folder / f"{self._pid}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with open(handle, "ab") as file:  # noqa: PTH123 - an open handle
            file.write(data)

    def _open(self) -> None:
        if self._dead or self._taken + 1 not in self._steps:
            return
        self._window = Window()
        self._window.calls.failed = self._fails
        self._window.keeps_weights = _rank() == min(self._ranks())
        self._window.open()

    def _ranks(self) -> list[int]:
        if self._group:
            return self._group
        c10d = sys.modules.get("torch.distributed.distributed_c10d")
        if c10d is None or not c10d.is_initialized():
            return [_rank()]
        return list(range(c10d.get_world_size()))

    def _ddp(self, module: ModuleType) -> None:
        kind = module.DistributedDataParallel
        make, hook = kind.__init__, kind.register_comm_hook
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]

        @functools.wraps(make)
        def making(model: Any, *args: Any, **kwargs: Any) -> None:
            make(model, *args, **kwargs)
            with suppress(Exception):
                ranks = list(c10d.get_process_group_ranks(model.process_group))
                self._groups += self._group != ranks
                self._group = self._group or ranks
                self._put({"wrapped": "DistributedDataParallel", "place": place(sys._getframe(1))})  # noqa: SLF001

        @functools.wraps(hook)
        def register_comm_hook(model: Any, state: Any, function: Any) -> Any:
            self._put({"hook": getattr(function, "__name__", type(function).__name__)})
            return hook(model, state, function)

        kind.__init__, kind.register_comm_hook = making, register_comm_hook

    def _autograd(self, module: ModuleType) -> None:
        backward = module.backward

        @functools.wraps(backward)
        def noting(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            window = self._window
            if window is None or self._busy or sys.modules["torch"].compiler.is_compiling():
                return backward(tensors, *args, **kwargs)
            loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
            frame = sys._getframe(1)  # noqa: SLF001 - documented
            self._guard(lambda: window.before_backward(loss, frame))
            result = backward(tensors, *args, **kwargs)
            self._guard(window.after_backward)
            return result

        module.backward = noting  # type: ignore[attr-defined]

    def _guard(self, do: Callable[[], Any]) -> None:
        if self._dead:
            return
        begun = time.perf_counter()
        try:
            do()
        except Exception as error:
            self._fails(error)
        self._spent += time.perf_counter() - begun

    def _gathers(self, module: ModuleType) -> None:
        """Note values that the program gathers from other ranks in a step: its loss may depend on them."""
        package = sys.modules.get("torch.distributed")
        for name in _GATHERS:
            old = getattr(module, name)

            @functools.wraps(old)
            def call(*args: Any, _old: Any = old, _name: str = name, **kwargs: Any) -> Any:
                window = self._window
                if window is not None and not self._busy and any(t.is_floating_point() for t in tensors_in(args)):
                    window.exchanged = window.exchanged or [_name, *place(sys._getframe(1))]  # noqa: SLF001
                return _old(*args, **kwargs)

            setattr(module, name, call)
            if getattr(package, name, None) is old:
                setattr(package, name, call)
        self._sums(module, package)

    def _sums(self, module: Any, package: Any) -> None:
        """Note sums over all ranks of values that have a gradient: `all_reduce()` passes none to the other ranks."""
        old, total = module.all_reduce, module.ReduceOp.SUM

        @functools.wraps(old)
        def all_reduce(tensor: Any, op: Any = total, group: Any = None, async_op: bool = False) -> Any:
            result = old(tensor, op, group, async_op)
            window = self._window
            if window is not None and not self._busy and op == total and getattr(tensor, "grad_fn", None) is not None:
                frame = sys._getframe(1)  # noqa: SLF001 - documented
                self._guard(lambda: self._note_sum(window, tensor, group or module.group.WORLD, frame))
            return result

        module.all_reduce = all_reduce
        if package.all_reduce is old:
            package.all_reduce = all_reduce

    def _note_sum(self, window: Window, tensor: Any, group: Any, frame: FrameType) -> None:
        c10d: Any = sys.modules["torch.distributed.distributed_c10d"]
        if group is not c10d.GroupMember.NON_GROUP_MEMBER and c10d.get_process_group_ranks(group) == self._ranks():
            window.note_sum(tensor, place(frame))

    def _dtensors(self, module: ModuleType) -> None:
        """Note whether the program declares that an input of this rank is a part."""
        kind = module.DTensor
        old = kind.from_local

        @functools.wraps(old)
        def from_local(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            window = self._window
            if window is not None and not self._busy and window.calls.is_inside and tensor.grad_fn is None:
                placements = kwargs.get("placements") or (args[1] if len(args) > 1 else ())
                window.cuts = window.cuts or any(hasattr(p, "dim") for p in placements or ())
            return old(tensor, *args, **kwargs)

        kind.from_local = staticmethod(from_local)

    def _schedules(self, module: ModuleType) -> None:
        def note_pass(one: pipelines.Pass) -> None:
            if self._window is not None:
                self._window.passes.append(one)
                self._window.passed_at = self._window.passed_at or place(sys._getframe(2))  # noqa: SLF001

        def note_gradients(schedule: Any) -> None:
            window = self._window
            if window is not None:
                self._guard(lambda: window.after.update(pipelines.gradients(schedule)))

        pipelines.patch_schedules(module, note_pass, note_gradients)

    def _pipeline(self, window: Window, step: int) -> None:
        """Compare the passes of a pipeline; each rank waits for the one before it, and then for the one after it."""
        world = len(self._ranks())
        why = pipelines.limit_of(window.passes, world)
        if why:
            self._put({"step": step, "uncovered": why})
            return
        now = pipelines.gradients(window.passes[0].schedule)
        after = {name: window.after[name] for name in now if name in window.after}
        self._busy = True
        try:
            with random_states.unchanged():
                found = pipelines.repeat_passes(
                    window.passes, after, now,
                    lambda name, value: _save(value, self._folder / f"step-{step}-{name}.pt"),
                    lambda name: self._awaited(self._folder / f"step-{step}-{name}.pt"),
                )  # fmt: skip
        except Exception:
            (self._folder / _GIVEN_UP).touch(mode=0o600)
            raise
        finally:
            self._busy = False
        file, line = window.passed_at or ("", 0)
        self._put({"step": step, "world": world, "pipeline": {**found, "file": file, "line": line}})

    def _awaited(self, path: Path) -> Any:
        torch: Any = sys.modules["torch"]
        until = time.monotonic() + _WAIT
        while not path.exists():
            if time.monotonic() > until or (self._folder / _GIVEN_UP).exists():
                raise TimeoutError("another stage's part of the repetition did not come")
            time.sleep(_PAUSE)
        found = torch.load(path, map_location="cpu", weights_only=True)
        path.unlink()
        return found

    def _clip(self, module: ModuleType) -> None:
        package = sys.modules.get("torch.nn.utils")
        for name in _CLIPS:
            old = getattr(module, name, None)
            if old is None:
                continue
            new = self._noting(old, name)
            setattr(module, name, new)
            if getattr(package, name, None) is old:
                setattr(package, name, new)

    def _scaler(self, module: ModuleType) -> None:
        for name in ("unscale_", "step"):
            setattr(module.GradScaler, name, self._noting(getattr(module.GradScaler, name), "GradScaler"))

    def _noting(self, function: Any, name: str) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._window is not None:
                self._window.clipped = name
            return function(*args, **kwargs)

        return call

    def _optimizer(self, module: ModuleType) -> None:
        def begins(optimizer: Any, args: Any, kwargs: Any) -> Any:
            if self._window is None:
                return None
            return when_complete(args, kwargs, lambda: self._guard(lambda: self._compare(optimizer)))

        TrainingSteps(begins, lambda optimizer: self._guard(lambda: self._end_step(optimizer))).hook(module)

    def _end_step(self, optimizer: Any) -> None:
        self._taken += 1
        window, self._window = self._window, None
        if window is not None:
            window.close()
            self._put({"ended": self._taken, "weights": compare.weight_sums(window, optimizer), "spent": self._spent})
        self._open()

    def _compare(self, optimizer: Any) -> None:
        window = self._window
        if window is None or window.compared:  # a closure may be called several times
            return
        window.compared = True
        window.close()
        step, rank, ranks = self._taken + 1, _rank(), self._ranks()
        if window.passes:
            self._pipeline(window, step)
            return
        if window.uncovered or self._groups > 1:
            self._put({"step": step, "uncovered": window.uncovered or "models with different groups of ranks"})
            return
        rows = window.at_step(optimizer)
        if not rows:
            self._put({"step": step, "empty": True})
            return
        self._put({"step": step, "world": len(ranks), "facts": _facts(window, optimizer, rows, len(ranks))})
        if len(ranks) < 2 or rank not in ranks:
            return
        lead = min(ranks)
        note = {
            "rank": rank, "rows": rows, "calls": _sendable(window), "frozen": sorted(window.frozen),
            "group": window.group, "layers": window.layer_parts(), "cuts": window.cuts,
        }  # fmt: skip
        if rank != lead:
            _save(note, self._name(step, rank))
            return
        others = self._others(step, [r for r in ranks if r != lead])
        missing = [r for r in ranks if r != lead and r not in others]
        if any(set(other["rows"]) != set(rows) for other in others.values()):
            self._put({"step": step, "uncovered": "ranks whose optimizers hold different parameters"})
            return
        given = {lead: note, **others}
        found: dict[str, Any] = {"step": step, "missing": missing}
        self._busy = True
        try:
            with random_states.unchanged():
                if window.group:
                    found |= layers.compare_groups(window, given, fits=_fits(window)) if not missing else {}
                else:
                    again = recompute.recompute(window, given) if not missing and _fits(window) else None
                    if again is None and not missing:
                        found["unrepeated"] = "memory"
                    found["compared"] = compare.compare(given, again, ranks, window.order, sharded=bool(window.sharded))
                    if again is not None:
                        found["again"] = again.told
        finally:
            self._busy = False
        self._put(found)

    def _name(self, step: int, rank: int) -> Path:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return self._folder / f"step-{step}-{attempt}-rank-{rank}.pt"

    def _others(self, step: int, ranks: list[int]) -> dict[int, Any]:
        torch: Any = sys.modules["torch"]
        until = time.monotonic() + _WAIT
        found: dict[int, Any] = {}
        while len(found) < len(ranks) and time.monotonic() < until:
            for rank in ranks:
                path = self._name(step, rank)
                if rank not in found and path.exists():
                    found[rank] = torch.load(path, map_location="cpu", weights_only=True)
                    path.unlink()
            time.sleep(_PAUSE)
        return found


def _rank() -> int:
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is not None and c10d.is_initialized():
        return int(c10d.get_rank())
    text = os.environ.get("RANK", "0")
    return int(text) if text.isdigit() else 0


def _fits(window: Window) -> bool:
    """True if copies of the model fit into the free memory."""
    size = 0
    for root in {id(c.root): c.root for c in window.calls.calls}.values():
        size += sum(p.numel() * p.element_size() for p in root.parameters())
    try:
        pages, page = os.sysconf("SC_AVPHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return True
    return 4 * size < max(_SHARE * pages * page, 64 << 20)


def _sendable(window: Window) -> list[dict[str, Any]]:
    """Return the calls as another rank can have them."""
    found = []
    for call in window.calls.calls:
        plain = is_plain(call.args) and is_plain(call.kwargs)
        found.append({
            "prefix": window.prefix_of(call.root),
            "args": _portable(call.args) if plain else None,
            "kwargs": call.kwargs if plain else None,
            "random": {"cpu": call.random["cpu"], "python": call.random["python"]},
            "cuda": call.random.get("cuda"),
            "training": call.training,
            "buffers": call.buffers,
            "grads": [{index: [part_of(g)] for index, g in row.items()} for row in call.grads],
            "seen": [list(row) for row in call.seen],
        })  # fmt: skip
    return found


def _portable(args: Any) -> Any:
    return tuple(args)


def _save(value: Any, path: Path) -> None:
    torch: Any = sys.modules["torch"]
    part = path.with_suffix(".part")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "wb") as file:  # noqa: PTH123 - an open handle
        torch.save(value, file)
    part.rename(path)


def _facts(window: Window, optimizer: Any, rows: dict[str, Any], world: int) -> dict[str, Any]:
    """Return what a judge needs of this rank's step."""
    held = [p for group in optimizer.param_groups for p in group["params"]]
    kinds = {type(m).__name__ for c in window.calls.calls for m in c.root.modules()}
    return {
        "optimizer": type(optimizer).__name__,
        "parameters": len(held),
        "known": len(rows),
        "graded": sum(p.grad is not None for p in held),
        "calls": [
            {
                "root": window.prefix_of(c.root).rstrip("."),
                "kind": type(c.root).__name__,
                "wrapper": c.wrapper,
                "file": c.file,
                "line": c.line,
                "training": len(c.training),
                "used": any(c.grads),
            }
            for c in window.calls.calls
        ],
        "losses": window.losses,
        "clipped": window.clipped,
        "exchanged": window.exchanged,
        "loose": window.loose(optimizer),
        "sums": window.sums,
        "frozen": sorted(window.frozen)[:64],
        "batchnorm": sorted(k for k in kinds if "BatchNorm" in k),
        "sharded": bool(window.sharded - window.layers.keys()),
        "backwards": window.calls.backwards,
        "rows": [rows_of(c) for c in window.calls.calls],
        "weights": compare.weight_sums(window, optimizer),
        "group": window.group,
        "placed": compare.weight_sums(window, optimizer, placed=True),
    }


def begin(told: dict[str, Any], torch: ModuleType) -> None:
    """Compare steps of this process, unless it is a launcher."""
    if not is_launcher():
        parity = Parity(Path(told["watched"]) / FOLDER, tuple(told["parity"]))
        after_import(parity.patches(), parity.patch)
