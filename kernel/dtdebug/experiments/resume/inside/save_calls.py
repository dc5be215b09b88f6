"""Notes what a process saves and loads, what it restores, and in which line."""

from __future__ import annotations

import functools
import io
import os
import sys
import threading
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from dtdebug.experiments.resume.inside.training_state import is_finite

_KEYS, _DEPTH, _NUMBERS, _EXAMPLES = 64, 3, 64, 4
_CONTENTS = ("_stateful_to_state_dict", "_load_state_dict")
"""Functions of torch's distributed checkpoints through which the states of all objects go."""
_LEFT = 70
"""Exit status of a rank that would have written outside of its folder."""


class SaveCalls:
    """Observer of saves and restores."""

    def __init__(
        self,
        notes: Any,
        torch: Any,
        guarded: Callable[..., Callable[..., None]],
        site: Callable[[FrameType | None], tuple[str, int]],
        holds_moments: Callable[[Any], bool],
    ) -> None:
        self._notes, self._torch, self._guarded, self._site = notes, torch, guarded, site
        self._holds_moments = holds_moments
        self._saved: set[str] = set()
        self._states: dict[int, dict[Any, Any] | None] = {}
        """Thread -> states of the objects in the distributed checkpoint that it saves or loads."""
        self._late: dict[str, Callable[[Any], None]] = {
            "torch.distributed.checkpoint.state_dict_saver": lambda m: self._note_distributed_save(
                m, ("save", "async_save")
            ),
            "torch.distributed.checkpoint.state_dict_loader": lambda m: self._note_distributed_save(m, ("load",)),
            "safetensors.torch": self._safetensors,
            "lightning.fabric.utilities.cloud_io": self._lightning,
            "lightning_fabric.utilities.cloud_io": self._lightning,
            "numpy.random": lambda m: self._random(m, "set_state", "numpy"),
        }

    def patch(self) -> None:
        """Patch what exists already, and the rest once it is imported."""
        torch = self._torch
        serialization: Any = sys.modules["torch.serialization"]
        for name, noted in (("save", self._note_save), ("load", self._note_load)):
            wrapped = self._around(getattr(serialization, name), noted)
            setattr(serialization, name, wrapped)
            setattr(torch, name, wrapped)
        self._restores(torch.nn.Module, "module")
        self._restores(torch.optim.Optimizer, "optimizer")
        schedulers: Any = sys.modules["torch.optim.lr_scheduler"]
        for kind in vars(schedulers).values():
            of_schedulers = isinstance(kind, type) and issubclass(kind, schedulers.LRScheduler)
            if of_schedulers and "load_state_dict" in vars(kind):
                self._restores(kind, "scheduler")
        self._restores(sys.modules["torch.amp.grad_scaler"].GradScaler, "scaler")
        for name in ("rename", "replace"):
            setattr(os, name, self._around(getattr(os, name), self._note_move))
        self._random(torch, "set_rng_state", "torch")
        self._random(sys.modules["random"], "setstate", "random")
        for name in [name for name in self._late if name in sys.modules]:
            self._late.pop(name)(sys.modules[name])
        sys.meta_path.insert(0, _After(self._late))

    def _around(self, original: Any, noted: Callable[..., None]) -> Any:
        note = self._guarded(noted)

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)  # noqa: SLF001 - documented
            note(None, frame, args, kwargs, begun=True)
            result = original(*args, **kwargs)
            note(result, frame, args, kwargs, begun=False)
            return result

        return run

    def _note_save(self, result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
        where = args[1] if len(args) > 1 else kwargs.get("f")
        self._save(where, args[0] if args else kwargs.get("obj"), frame, begun=begun)

    def _save(self, where: Any, saved: Any, frame: Any, *, begun: bool) -> None:
        path = _path(where)
        if not path:
            return
        if begun:
            if not os.path.realpath(path).startswith(self._notes.home + os.sep):
                self._notes.put("outside", path=path, site=self._site(frame))
                os._exit(_LEFT)
            return
        self._saved.add(path)
        numbers: dict[str, float] = {}
        keys, kinds = _contents(saved, numbers)
        if "optimizer" not in kinds and self._holds_moments(saved):
            kinds.add("optimizer")
        self._notes.put("save", path=path, keys=keys, kinds=sorted(kinds), numbers=numbers, site=self._site(frame))

    def _note_move(self, result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
        """Note that what was saved gets another name: many write to a temporary file first."""
        source, target = (args[i] if len(args) > i else kwargs.get(key) for i, key in enumerate(("src", "dst")))
        path = _path(source)
        if not begun and any(one == path or one.startswith(path + os.sep) for one in self._saved):
            self._notes.put("move", path=path, to=_path(target))

    def _note_load(self, result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
        path = _path(args[0] if args else kwargs.get("f"))
        if path and not begun:
            keys, kinds = _contents(result, {})
            self._notes.put("load", path=path, keys=keys, kinds=sorted(kinds), site=self._site(frame))

    def _note_distributed_save(self, module: Any, names: tuple[str, ...]) -> None:
        package: Any = sys.modules.get("torch.distributed.checkpoint")
        for name in _CONTENTS:
            if hasattr(module, name):
                setattr(module, name, self._contents_of(getattr(module, name)))
        for name in names:
            original = getattr(module, name)
            wrapped = self._around(original, self._dcp_load if name == "load" else self._dcp_save)
            setattr(module, name, wrapped)
            if getattr(package, name, None) is original:
                setattr(package, name, wrapped)

    def _contents_of(self, original: Any) -> Any:
        """Wrap what turns the objects of a distributed checkpoint into their states, or gets these to fill them."""

        @functools.wraps(original)
        def run(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            states = result if isinstance(result, dict) else args[0] if args else kwargs.get("state_dict")
            self._states[threading.get_ident()] = states if isinstance(states, dict) else None
            return result

        return run

    def _dcp_save(self, result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
        self._save(_dcp_path(kwargs), self._take_states(args, kwargs, begun=begun), frame, begun=begun)

    def _take_states(self, args: Any, kwargs: Any, *, begun: bool) -> Any:
        states = self._states.pop(threading.get_ident(), None)
        given = args[0] if args else kwargs.get("state_dict")
        return given if begun or states is None else states

    def _dcp_load(self, result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
        states = self._take_states(args, kwargs, begun=begun)
        if not begun:
            keys, kinds = _contents(states, {})
            path = _dcp_path(kwargs) or "a distributed checkpoint"
            self._notes.put("load", path=path, keys=keys, kinds=sorted(kinds), site=self._site(frame))
            for kind in kinds & {"module", "optimizer"}:  # their tensors are filled in place
                self._notes.put("restore", what=kind, object=0, site=self._site(frame))

    def _safetensors(self, module: Any) -> None:
        def saved(result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
            where = args[1] if len(args) > 1 else kwargs.get("filename")
            self._save(where, args[0] if args else kwargs.get("tensors"), frame, begun=begun)

        module.save_file = self._around(module.save_file, saved)
        module.load_file = self._around(module.load_file, self._note_load)

    def _lightning(self, module: Any) -> None:
        """Note saves that go through memory to the file."""

        def saved(result: Any, frame: Any, args: Any, kwargs: Any, *, begun: bool) -> None:
            where = args[1] if len(args) > 1 else kwargs.get("filepath")
            self._save(where, args[0] if args else kwargs.get("checkpoint"), frame, begun=begun)

        if hasattr(module, "_atomic_save"):
            module._atomic_save = self._around(module._atomic_save, saved)  # noqa: SLF001 - all its savers call it

    def _restores(self, kind: Any, what: str) -> None:
        original = kind.load_state_dict
        note = self._guarded(self._note_restore)

        @functools.wraps(original)
        def load_state_dict(this: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(this, *args, **kwargs)
            strict = kwargs.get("strict", args[1] if what == "module" and len(args) > 1 else True)
            given = args[0] if args else kwargs.get("state_dict")
            note(this, what, result, {"strict": bool(strict), "given": len(given or ())}, sys._getframe(1))  # noqa: SLF001
            return result

        kind.load_state_dict = load_state_dict

    def _note_restore(self, this: Any, what: str, result: Any, given: dict[str, Any], frame: Any) -> None:
        missing = list(getattr(result, "missing_keys", ()))
        unexpected = list(getattr(result, "unexpected_keys", ()))
        self._notes.put(
            "restore", what=what, object=id(this), kind=type(this).__name__, **given,
            missing=len(missing), unexpected=len(unexpected), examples=[*missing[:_EXAMPLES], *unexpected[:_EXAMPLES]],
            site=self._site(frame),
        )  # fmt: skip

    def _random(self, module: Any, name: str, what: str) -> None:
        original = getattr(module, name)
        note = self._guarded(lambda frame: self._notes.put("restore", what=f"random {what}", site=self._site(frame)))

        @functools.wraps(original)
        def setting(*args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)  # noqa: SLF001 - documented
            if self._notes.steps == 0 and not _is_of_torch(frame):
                note(frame)
            return original(*args, **kwargs)

        setattr(module, name, setting)


def _is_of_torch(frame: FrameType) -> bool:
    """True if torch itself sets a generator, as the replay of dropout does."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch"


class _After:
    """Import hook that patches modules as soon as they are imported; finds no modules itself."""

    def __init__(self, waiting: dict[str, Callable[[Any], None]]) -> None:
        self._waiting = waiting

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        patch = self._waiting.pop(name, None)
        if patch is None:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None and spec.loader is not None:
                _wrap(spec.loader, patch)
                return spec
        return None


def _wrap(loader: Any, patch: Callable[[Any], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        patch(module)

    loader.exec_module = exec_module


def _path(where: Any) -> str:
    """Return the absolute path that is saved to or loaded from; empty if it is only memory."""
    if isinstance(where, (str, os.PathLike)):
        return os.path.abspath(os.fspath(where))  # noqa: PTH100 - no links are followed
    name = getattr(where, "name", "") if not isinstance(where, io.BytesIO) else ""
    return os.path.abspath(name) if isinstance(name, str) and name else ""  # noqa: PTH100


def _dcp_path(kwargs: dict[str, Any]) -> str:
    where = kwargs.get("checkpoint_id")
    if where is None:
        made = kwargs.get("storage_writer") or kwargs.get("storage_reader")
        where = getattr(made, "path", None)
    return _path(where) if where is not None else ""


def _contents(saved: Any, numbers: dict[str, float]) -> tuple[list[str], set[str]]:
    """Return the names of what is saved and what kinds of state it holds; adds the numbers in it to `numbers`."""
    kinds: set[str] = set()
    if hasattr(saved, "state_dict") and not isinstance(saved, dict):  # a whole model, or a DCP Stateful
        kinds.add("optimizer" if hasattr(saved, "param_groups") else "module")
        return [type(saved).__name__], kinds
    if not isinstance(saved, dict):
        return [type(saved).__name__], kinds
    keys = [str(key) for key in list(saved)[:_KEYS]]
    _walk("", saved, _DEPTH, kinds, numbers)
    return keys, kinds


def _walk(name: str, value: Any, depth: int, kinds: set[str], numbers: dict[str, float]) -> None:
    if type(value) in (int, float) and len(numbers) < _NUMBERS and is_finite(value):
        numbers[name] = value
        return
    if hasattr(value, "state_dict") and not isinstance(value, dict):
        kinds.add("optimizer" if hasattr(value, "param_groups") else "module")
        return
    if isinstance(value, (list, tuple)) and depth:  # of several optimizers
        for inner in value[:_EXAMPLES]:
            if isinstance(inner, dict):
                _walk(name, inner, depth - 1, kinds, {})
    if not isinstance(value, dict) or not depth:
        return
    names = {str(key) for key in list(value)[:4096]}
    if {"state", "param_groups"} <= {name.partition(".")[0] for name in names}:  # flattened or not
        kinds.add("optimizer")
    elif names & {"last_epoch", "_step_count", "num_bad_epochs"}:
        kinds.add("scheduler")
        numbers |= {f"{name}.last_epoch": count} if type(count := value.get("last_epoch")) is int else {}
    elif {"scale", "growth_factor"} <= names:
        kinds.add("scaler")
    else:
        tensors = sum(hasattr(inner, "numel") for inner in list(value.values())[:4096])
        if tensors > 1 and tensors * 2 > len(value):
            kinds.add("module")
            return
        for key, inner in list(value.items())[:_KEYS]:
            _walk(f"{name}.{key}".lstrip("."), inner, depth - 1, kinds, numbers)
