"""Summarises the state of a training before a step: what has to be the same after resuming, as hashes and numbers."""

from __future__ import annotations

import functools
import random
import sys
import weakref
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.repeat.tensors import tensors_in
from dtdebug_taxonomy.stacks.frames import is_library

_MOST, _DEPTH, _SCALARS, _FRAMES = 50_000, 4, 400, 12
_WRAPPERS = ("module.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod.")
"""Parts of a parameter's name that wrappers add."""
_LARGEST = 2**63
"""Integers below it are read everywhere."""
_COPY = 0.5
"""Share of the parameters' shapes from which tensors count as a copy of the weights."""
Site = Callable[[FrameType | None], tuple[str, int]]


class TrainingState:
    """State of this process's training."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._roots: dict[int, weakref.ref[Any]] = {}
        """Models that were called, in the order of their first call."""
        self._made: list[tuple[str, Any, tuple[str, int]]] = []
        """Kind, weak reference and line of each scheduler, scaler, sampler and optimizer, in order."""
        self._inputs: list[str] = []
        self._batches: list[str] = []
        self._random: dict[str, str] = {}
        self._draws: set[str] = set()
        """Generators from which the data or the passes of this step have drawn."""
        self._loss: list[str] = []
        self._fetched: dict[str, str] = {}

    def patch_makers(self, guarded: Callable[..., Any], site: Site) -> None:
        """Remember the objects whose state a program should save."""
        for module, name, kind in (
            ("torch.optim.lr_scheduler", "LRScheduler", "scheduler"),
            ("torch.optim.lr_scheduler", "ReduceLROnPlateau", "scheduler"),
            ("torch.amp.grad_scaler", "GradScaler", "scaler"),
            ("torch.utils.data.distributed", "DistributedSampler", "sampler"),
            ("torch.optim.optimizer", "Optimizer", "optimizer"),
        ):
            found = getattr(sys.modules.get(module), name, None)
            if found is not None:
                self._patch_maker(found, kind, guarded, site)
        loader: Any = getattr(sys.modules.get("torch.utils.data.dataloader"), "_BaseDataLoaderIter", None)
        if loader is not None:
            give, note, before = loader.__next__, guarded(self._note_batch), guarded(self._note_fetch)

            @functools.wraps(give)
            def following(this: Any) -> Any:
                before(this)
                batch = give(this)
                note(this, batch)
                return batch

            loader.__next__ = following

    def _patch_maker(self, kind: Any, called: str, guarded: Callable[..., Any], site: Site) -> None:
        make = kind.__init__

        def remember(one: Any, frame: FrameType | None) -> None:
            if not any(ref() is one for _, ref, _ in self._made):
                self._made.append((called, weakref.ref(one), site(frame)))

        note = guarded(remember)

        @functools.wraps(make)
        def init(this: Any, *args: Any, **kwargs: Any) -> None:
            make(this, *args, **kwargs)
            note(this, sys._getframe(1))  # noqa: SLF001 - documented

        kind.__init__ = init

    def _note_fetch(self, iterator: Any) -> None:
        """Note the generators before a batch; the first one draws the order of all, which the samples show."""
        self._fetched = self._generators() if getattr(iterator, "_num_yielded", 0) else {}

    def _note_batch(self, iterator: Any, batch: Any) -> None:
        self._batches.append(fingerprints.digest(batch))
        self._draws |= {g for g, state in self._generators().items() if self._fetched.get(g, state) != state}

    def note_forward(self, module: Any, args: Any) -> None:
        """Note an outermost forward pass with gradients."""
        known = self._roots.get(id(module))
        if known is None or known() is not module:
            self._roots.pop(id(module), None)  # of a model that is gone, whose id this one has
            self._roots[id(module)] = weakref.ref(module)
        found = fingerprints.digest(args)
        if found:
            self._inputs.append(found)
        if not self._random:
            self._random = self._generators()

    def note_loss(self, tensors: Any) -> None:
        """Note the loss of a backward pass."""
        loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
        if getattr(loss, "numel", int)() == 1:
            self._loss.append(repr(float(loss.detach().item())))

    def clear(self) -> None:
        """Forget the passes of a step that has ended."""
        self._inputs, self._batches, self._random, self._loss = [], [], {}, []
        self._draws = set()

    def describe(self, optimizer: Any, frame: FrameType | None) -> dict[str, Any]:
        """Return the state before a step of the optimizer."""
        now = self._generators()
        names, buffers = self._names()
        held = [p for group in optimizer.param_groups for p in group["params"]][:_MOST]
        named = {id(p): names.get(id(p)) or f"parameter {i}" for i, p in enumerate(held)}
        ids = {id(p) for p in held}
        others = {n: p for p, n in self._unheld(ids)}
        samples = self._inputs or self._batches[-max(1, len(self._loss)) :]
        self._made = [row for row in self._made if row[1]() is not None]
        optimizers = [ref() for kind, ref, _ in self._made if kind == "optimizer"]
        return {
            "o": next((i for i, one in enumerate(optimizers) if one is optimizer), 0),
            "made": next((at for _, ref, at in self._made if ref() is optimizer), ("", 0)),
            "object": id(optimizer),
            "weights": {named[id(p)]: self._hash(p) for p in held} | {n: self._hash(p) for n, p in others.items()},
            "buffers": {name: self._hash(b) for name, b in buffers},
            "moments": self._moments(optimizer, held, named),
            "settings": [_numbers({k: v for k, v in g.items() if k != "params"}) for g in optimizer.param_groups[:64]],
            "schedulers": [
                {"kind": type(ref()).__name__, "site": at, "values": _scheduler(ref())}
                for kind, ref, at in self._made
                if kind == "scheduler"
            ][:16],
            "scalers": [_scaler(ref()) for kind, ref, _ in self._made if kind == "scaler"],
            "epochs": [getattr(ref(), "epoch", None) for kind, ref, _ in self._made if kind == "sampler"][:16],
            "samples": samples,
            "random": self._random or now,
            "draws": sorted(self._draws | {g for g, state in self._random.items() if now.get(g) != state}),
            "loss": self._loss[-1:],
            "sharded": any(hasattr(p, "_local_tensor") or hasattr(p, "_fsdp_flattened") for p in held),
            **self._variables(frame, held),
        }  # fmt: skip

    def holds_moments(self, saved: Any) -> bool:
        """True if something to be saved has the values of an optimizer's state, in whatever form."""
        held = self._torch.optim.Optimizer
        made = [one for kind, ref, _ in self._made if kind == "optimizer" and isinstance(one := ref(), held)]
        known = {
            self._hash(value)
            for one in made for state in list(one.state.values())[:_MOST]
            if isinstance(state, dict) for value in state.values()
            if isinstance(value, self._torch.Tensor) and value.numel() > 1
        }  # fmt: skip
        return bool(known) and any(
            isinstance(t, self._torch.Tensor) and t.numel() > 1 and self._hash(t) in known for t in tensors_in(saved)
        )

    def _names(self) -> tuple[dict[int, str], list[tuple[str, Any]]]:
        names: dict[int, str] = {}
        buffers: dict[int, tuple[str, Any]] = {}
        for place, root in enumerate(sorted(self._models(), key=lambda m: -sum(1 for _ in m.parameters()))):
            prefix = f"{type(root).__name__} {place + 1}." if place else ""
            for name, parameter in root.named_parameters(remove_duplicate=False):
                names.setdefault(id(parameter), plain_name(prefix + name))
            for name, buffer in root.named_buffers(remove_duplicate=False):
                buffers.setdefault(id(buffer), (plain_name(prefix + name), buffer))
        return names, list(buffers.values())[:_MOST]

    def _models(self) -> list[Any]:
        return [root for ref in list(self._roots.values()) if (root := ref()) is not None]

    def _unheld(self, ids: set[int]) -> Iterator[tuple[Any, str]]:
        """Yield the frozen parameters of the models that are trained."""
        for root in self._models():
            own = dict(root.named_parameters())
            if any(id(p) in ids for p in own.values()):
                yield from ((p, plain_name(n)) for n, p in own.items() if id(p) not in ids and not p.requires_grad)

    def _hash(self, tensor: Any) -> str:
        local = getattr(tensor, "_local_tensor", tensor).detach()
        if not local.numel() or local.device.type == "meta" or local.layout is not self._torch.strided:
            return f"{tuple(local.shape)}"
        return fingerprints.hashes([local.contiguous()])[0]

    def _moments(self, optimizer: Any, held: list[Any], named: dict[int, str]) -> dict[str, dict[str, str]]:
        """Return key of the optimizer's state -> parameter -> hash or number."""
        found: dict[str, dict[str, str]] = {}
        one = self._torch.optim.Optimizer
        states = [o.state for o in (optimizer, *(v for v in vars(optimizer).values() if isinstance(v, one)))]
        for parameter in held:
            state: Any = next((s[parameter] for s in states if s.get(parameter)), {})
            for key, value in state.items() if isinstance(state, dict) else ():
                if isinstance(value, self._torch.Tensor):
                    text = repr(value.item()) if value.numel() == 1 else self._hash(value)
                elif isinstance(value, (int, float)):
                    text = repr(float(value))
                else:
                    continue
                found.setdefault(str(key), {})[named[id(parameter)]] = text
        return found

    def _generators(self) -> dict[str, str]:
        found = {
            "torch": f"{zlib.crc32(self._torch.get_rng_state().numpy().tobytes()):08x}",
            "random": f"{hash(random.getstate()[1]) & 0xFFFFFFFF:08x}",
        }
        numpy: Any = sys.modules.get("numpy")
        if numpy is not None and hasattr(numpy, "random"):
            _, keys, place, *_ = numpy.random.get_state()
            found["numpy"] = f"{zlib.crc32(keys.tobytes(), place):08x}"
        return found

    def _variables(self, frame: FrameType | None, held: list[Any]) -> dict[str, Any]:
        """Return the numbers, and the copies of the weights, that variables of the program hold."""
        walk = _Walk(self._torch, held)
        frames = 0
        while frame is not None and frames < _FRAMES:
            if not is_library(frame.f_code.co_filename):
                frames += 1
                for name, value in list(frame.f_locals.items())[:400]:
                    if not name.startswith("__"):
                        walk.visit(name, value, _DEPTH)
            frame = frame.f_back
        copies = {name: [self._hash(t) for t in tensors] for name, tensors in walk.copies().items()}
        return {"numbers": walk.numbers, "copies": copies}


class _Walk:
    """Search through the program's variables, without calling its code."""

    def __init__(self, torch: Any, held: list[Any]) -> None:
        self._torch = torch
        self._own = {_pointer(p) for p in held} | {_pointer(p.grad) for p in held if p.grad is not None}
        self._shapes = Counter(tuple(p.shape) for p in held)
        self._groups: dict[str, list[Any]] = {}
        self._seen: set[int] = set()
        self.numbers: dict[str, float | int] = {}

    def copies(self) -> dict[str, list[Any]]:
        """Return variable -> tensors, of those that hold as many tensors of the weights' shapes as the model does."""
        found = {}
        for name, tensors in self._groups.items():
            alike = sum((Counter(tuple(t.shape) for t in tensors) & self._shapes).values())
            own = sum(_pointer(t) in self._own for t in tensors)
            if alike > 1 and alike >= _COPY * self._shapes.total() and not own:
                found[name] = tensors[:_MOST]
        return found

    def visit(self, name: str, value: Any, depth: int) -> None:
        """Visit a variable."""
        kind = type(value)
        if kind in (int, float):
            if len(self.numbers) < _SCALARS and is_finite(value):
                self.numbers.setdefault(name, value)
            return
        if id(value) in self._seen or not depth or kind in (str, bytes, bool, type(None)):
            return
        self._seen.add(id(value))
        nn = self._torch.nn
        if isinstance(value, nn.Module):
            # the statistics of a copy are each rank's own, and come anew with its next update
            self._groups.setdefault(name, list(value.parameters()) or list(value.buffers()))
            if not is_library(str(getattr(sys.modules.get(kind.__module__), "__file__", "") or "<")):
                self._attributes(name, value, depth)
        elif isinstance(value, self._torch.optim.Optimizer):
            pass
        elif isinstance(value, (dict, list, tuple)):
            self._items(name, value, depth)
        elif isinstance(value, ModuleType):
            file = getattr(value, "__file__", None)
            if file and not is_library(str(file)):
                self._module(name, value, depth)
        elif hasattr(value, "__dict__") and not isinstance(value, type):
            self._attributes(name, value, depth)

    def _items(self, name: str, value: Any, depth: int) -> None:
        rows = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        tensors = [inner for _, inner in rows[:_MOST] if isinstance(inner, self._torch.Tensor)]
        if tensors:
            self._groups.setdefault(name, tensors)
        for key, inner in rows[:64]:
            numbered = isinstance(key, int) and type(inner) in (int, float)  # a list of results
            if not numbered and isinstance(key, (str, int)) and not isinstance(inner, self._torch.Tensor):
                self.visit(f"{name}[{key!r}]", inner, depth - 1)

    def _module(self, name: str, value: ModuleType, depth: int) -> None:
        """Visit the variables of a module of the program, without the modules that it imports."""
        for key, inner in list(vars(value).items())[:256]:
            if not key.startswith("__") and not isinstance(inner, ModuleType):
                self.visit(f"{name}.{key}", inner, depth - 1)

    def _attributes(self, name: str, value: Any, depth: int) -> None:
        module = sys.modules.get(type(value).__module__)
        if is_library(str(getattr(module, "__file__", "") or "<")) and type(value).__module__ != "argparse":
            return
        for key, inner in list(vars(value).items())[:256]:
            if not key.startswith("__") and key not in ("_parameters", "_buffers", "_modules"):
                self.visit(f"{name}.{key}", inner, depth - 1)


def is_finite(value: float) -> bool:
    """True if JSON and its readers have this number: a best loss often begins as infinity."""
    return -_LARGEST < value < _LARGEST


def plain_name(name: str) -> str:
    """Return a parameter's name without what wrappers add."""
    for part in _WRAPPERS:
        name = name.replace(f".{part}", ".").removeprefix(part)
    return name


def _pointer(tensor: Any) -> int:
    return int(getattr(tensor, "_local_tensor", tensor).data_ptr())


def _numbers(values: dict[str, Any]) -> dict[str, str]:
    """Return the numbers among settings, as text."""
    found = {}
    for key, value in values.items():
        one = value.item() if hasattr(value, "item") and getattr(value, "numel", int)() == 1 else value
        if isinstance(one, (int, float, bool)):
            found[str(key)] = repr(one)
        elif isinstance(one, (list, tuple)) and all(isinstance(v, (int, float)) for v in one):
            found[str(key)] = repr(tuple(one))  # formats turn one into the other
    return found


def _scaler(scaler: Any) -> dict[str, str]:
    """Return scale and tracker; until its first step a scaler keeps what it was made with, or has loaded, apart."""
    found = {}
    for now, at_first in (("_scale", "_init_scale"), ("_growth_tracker", "_init_growth_tracker")):
        value = getattr(scaler, now, None)
        value = getattr(scaler, at_first, None) if value is None else value
        if value is not None:
            found[now] = repr(float(value.item() if hasattr(value, "item") else value))
    return found


def _scheduler(scheduler: Any) -> dict[str, str]:
    return _numbers({k: v for k, v in vars(scheduler).items() if k not in ("_get_lr_called_within_step", "verbose")})
