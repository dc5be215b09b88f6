"""Adds up the storages that are alive, by class and module, and keeps how it was at the peak."""

from __future__ import annotations

import functools
import importlib
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from dtdebug.experiments.collectives.inside import dispatcher_hook, fake_groups

_ROUND = 512
"""Multiple to which CUDA's allocator rounds sizes."""
_OF_PHASE = {"forward": "activations", "backward": "temporary", "optimizer": "temporary", "other": "inputs and other"}
"""Phase -> class of what is made in it, until more is known."""
_DETAIL = 1.002
"""Growth of the peak after which the modules are looked at again."""


class LiveTensors:
    """Storages of this process that are alive."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._held: dict[int, tuple[int, str, str, Any]] = {}
        """Address of a storage -> bytes, class, module, weak reference to it."""
        self._classes: Counter[str] = Counter()
        self._by_module: Counter[str] = Counter()
        self._total = self._peak = 0
        self._seen = 0.0
        self._at_peak: dict[str, Any] = {}
        self._detail: dict[str, Any] = {}
        self._modules_at_peak: dict[str, int] = {}
        self._before: dict[str, Any] = {}
        self.phase = "other"
        self.modules: Any = None
        """Torch's tracker of the modules that run."""
        self.site: Callable[[], tuple[str, int]] = lambda: ("", 0)
        self._born: dict[int, tuple[str, int]] = {}
        """Storage that was made while `notes_birth` -> the line that made it."""
        self.notes_birth = False

    def made(self, tensor: Any, kind: str = "") -> None:
        """Add a tensor's storage, if it is a new one."""
        tensor = getattr(tensor, "_local_tensor", tensor)
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):  # sparse, or a subclass without storage
            return
        key = storage._cdata  # noqa: SLF001 - its address
        known = self._held.get(key)
        size = -(-storage.nbytes() // _ROUND) * _ROUND
        if known is not None:
            if size != known[0]:
                self._resize(key, known, size)
            return
        module = self._module() if self.phase == "forward" else ""
        name = kind or _OF_PHASE[self.phase]
        gone = weakref.ref(storage, functools.partial(self._freed, key))
        self._held[key] = (size, name, module, gone)
        if self.notes_birth:
            self._born[key] = self.site()
        self._count(size, name, module)

    def mark(self, tensor: Any, kind: str) -> None:
        """Move a tensor's storage to a class."""
        if not isinstance(tensor, self._torch.Tensor):
            return
        self.made(tensor, kind)
        local = getattr(tensor, "_local_tensor", tensor)
        try:
            key = local.untyped_storage()._cdata  # noqa: SLF001
        except (NotImplementedError, RuntimeError):
            return
        known = self._held.get(key)
        if known is not None and known[1] != kind:
            size, before, module, gone = known
            self._classes[before] -= size
            self._classes[kind] += size
            self._by_module[module] -= size
            self._held[key] = (size, kind, "", gone)

    def kind(self, tensor: Any) -> str:
        """Return the class of a tensor's storage, or ""."""
        try:
            known = self._held.get(getattr(tensor, "_local_tensor", tensor).untyped_storage()._cdata)  # noqa: SLF001
        except (NotImplementedError, RuntimeError):
            return ""
        return known[1] if known is not None else ""

    def resized(self, storage: Any) -> None:
        """Handle a storage whose size was changed in place."""
        key = storage._cdata  # noqa: SLF001
        known = self._held.get(key)
        if known is not None:
            self._resize(key, known, -(-storage.nbytes() // _ROUND) * _ROUND)

    def _resize(self, key: int, known: tuple[int, str, str, Any], size: int) -> None:
        self._held[key] = (size, *known[1:])
        self._count(size - known[0], known[1], known[2])

    def _freed(self, key: int, _: Any) -> None:
        known = self._held.pop(key, None)
        self._born.pop(key, None)
        if known is not None:
            self._count(-known[0], known[1], known[2])

    def _count(self, size: int, name: str, module: str) -> None:
        self._total += size
        self._classes[name] += size
        if module:
            self._by_module[module] += size
        if self._total > self._peak:
            self._peak = self._total
            self._at_peak = dict(self._classes)
            if self._total > self._seen * _DETAIL:
                self._seen = float(self._total)
                self._detail = {"phase": self.phase, "module": self._module(), "site": self.site()}
                self._modules_at_peak = {m: b for m, b in self._by_module.items() if b > 0}

    def _module(self) -> str:
        names = self.modules.parents - {"Global"} if self.modules is not None else set()
        return max(names, key=len) if names else ""

    def is_kept(self, tensor: Any) -> bool:
        """True if the tensor's storage is one of those of `kept`."""
        try:
            return getattr(tensor, "_local_tensor", tensor).untyped_storage()._cdata in self._born  # noqa: SLF001
        except (NotImplementedError, RuntimeError):
            return False

    def kept(self) -> list[tuple[int, str, int]]:
        """Return what was made while births were noted, and is still alive: bytes, file and line, the most first.

        Parameters, gradients and the optimizer's state are meant to be.
        """
        found: Counter[tuple[str, int]] = Counter()
        for key, site in self._born.items():
            size, kind, _, _ = self._held[key]
            if kind in _OF_PHASE.values():
                found[site] += size
        return [(size, *site) for site, size in found.most_common(8)]

    def restart(self) -> None:
        """Look for the peak again, now that the optimizer's state is known as such; a higher one before is kept."""
        self._before = self._result()
        self._peak, self._seen = 0, 0.0

    def result(self) -> dict[str, Any]:
        """Return the peak, and what was alive then."""
        found = self._result()
        return found if found["peak"] >= self._before.get("peak", 0) else self._before

    def _result(self) -> dict[str, Any]:
        layers = sorted(self._modules_at_peak.items(), key=lambda row: -row[1])[:4096]
        return {
            "peak": self._peak,
            "classes": {name: size for name, size in self._at_peak.items() if size > 0},
            "modules": dict(layers),
            **self._detail,
        }


_SCALAR = "aten::_local_scalar_dense"


def dispatch_mode(torch: Any, live: LiveTensors, site: Callable[[], tuple[str, int]]) -> Any:
    """Return the mode that sees every operation; values that the program reads are 1."""
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    tree: Any = importlib.import_module("torch.utils._pytree")
    live.site = site
    resize = torch.UntypedStorage.resize_

    @functools.wraps(resize)
    def resizing(storage: Any, size: int) -> Any:
        found = resize(storage, size)
        live.resized(storage)
        return found

    torch.UntypedStorage.resize_ = resizing

    fake: Any = importlib.import_module("torch._subclasses.fake_tensor")

    class Sizes(base):  # type: ignore[misc]
        def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
            given = [a for a in tree.tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)]
            if given and not any(isinstance(a, fake.FakeTensor) for a in given):  # such as meshes, and data from files
                with fake.unset_fake_temporarily():
                    return func(*args, **kwargs)
            if func.namespace == "c10d" and any("Work" in str(v.type) for v in func._schema.returns):  # noqa: SLF001
                name = func._schema.name.partition("::")[2]  # noqa: SLF001
                call = dispatcher_hook.OwnCall(0, dispatcher_hook.Op(name, func), args, kwargs)
                return fake_groups.answer(call, torch)  # the reducer of DDP wants the tensors from the work
            return func(*args, **kwargs)

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func._schema.name  # noqa: SLF001 - has no other name
            if name == _SCALAR and type(args[0]).__name__ == "FakeTensor":
                one = args[0].dtype
                return True if one is torch.bool else 1.0 if one.is_floating_point else 1
            result = self._run(func, args, kwargs or {})
            for out in tree.tree_leaves(result):
                if isinstance(out, torch.Tensor):
                    live.made(out)
            if name.startswith(("c10d::", "_c10d_functional::")):
                _communicates(live, torch, name, tree.tree_leaves((args, result)))
            elif "split_with_sizes_copy" in name:
                for out in tree.tree_leaves((kwargs or {}).get("out", ())):
                    live.mark(out, "gathered")
            return result

    return Sizes()


_KEPT = frozenset(("parameters", "gradients", "buffers", "optimizer", "gathered"))
_OF_ITS_OWN = ("c10d::_allgather", "c10d::allgather", "c10d::_reduce_scatter", "c10d::reduce_scatter")
"""Operators whose tensors are made for the exchange; others work in place on what is there."""


def _communicates(live: LiveTensors, torch: Any, name: str, leaves: list[Any]) -> None:
    for tensor in leaves:
        if isinstance(tensor, torch.Tensor):
            known = live.kind(tensor)
            if known not in _KEPT and (known != "activations" or name.startswith(_OF_ITS_OWN)):
                live.mark(tensor, "communication")
