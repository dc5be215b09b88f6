"""Copies a module so that running the copy changes nothing of the original: parameters, buffers, plain attributes.

A deep copy would fail on sharded modules, locks and groups; here what is unknown is shared. Hooks that wrappers of
torch.distributed have set are left out: the copy runs on one process.
"""

from __future__ import annotations

import functools
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_DEPTH = 4


class ModuleCopy:
    """A copy of a module, and the way to what belongs to it.

    `weights`: name -> value of parameters that the module itself holds only in part.
    """

    def __init__(self, root: Any, weights: Mapping[str, Any] | None = None) -> None:
        self._root, self._weights = root, weights or {}
        self._done: dict[int, Any] = {}
        self._kept: list[Any] = []
        """Objects whose ids are in use."""
        self.module = self._copy_value()

    def set_forward(self, forward: Any) -> None:
        """Let the copy's calls run what those of the original ran; Lightning exchanges it for each call."""
        if forward is None:
            vars(self.module).pop("forward", None)
        else:
            vars(self.module)["forward"] = self._value(forward)

    def _copy_value(self) -> Any:
        modules = list(self._root.named_modules())
        for _, module in modules:
            shell = _own_class(module).__new__(_own_class(module))
            self._done[id(module)] = shell
        for name, module in modules:
            self._fill(module, f"{name}." if name else "")
        return self._done[id(self._root)]

    def _fill(self, module: Any, prefix: str) -> None:
        shell = self._done[id(module)]
        held: dict[str, Any] = {}
        for key, value in vars(module).items():
            if key == "_parameters":
                held[key] = type(value)((n, self._parameter(prefix + n, p)) for n, p in value.items())
            elif key in _HOOKS:
                held[key] = type(value)((n, self._value(hook)) for n, hook in value.items() if not _is_of_wrapper(hook))
            else:
                held[key] = self._value(value)
        vars(shell).update(held)
        if isinstance(getattr(module, "_trainer", None), object) and hasattr(module, "log_dict"):
            vars(shell).update(log=_nothing, log_dict=_nothing)  # Lightning would count a value twice

    def _parameter(self, name: str, parameter: Any) -> Any:
        torch: Any = sys.modules["torch"]
        if parameter is None:
            return None
        if id(parameter) not in self._done:
            value = self._weights.get(name, parameter)
            copied = torch.nn.Parameter(value.detach().clone(), requires_grad=parameter.requires_grad)
            self._done[id(parameter)] = copied
            self._kept.append(parameter)
        return self._done[id(parameter)]

    def _value(self, value: Any, depth: int = _DEPTH) -> Any:
        torch: Any = sys.modules["torch"]
        known = self._done.get(id(value))
        if known is not None:
            return known
        if isinstance(value, torch.Tensor):
            copied = value.detach().clone() if value.layout is torch.strided else value
        elif not depth:
            return value
        elif type(value) in (list, tuple, set):
            return type(value)(self._value(one, depth - 1) for one in value)
        elif type(value) in (dict, OrderedDict):
            return type(value)((name, self._value(one, depth - 1)) for name, one in value.items())
        elif isinstance(value, types.MethodType):
            function, owner = self._value(value.__func__, depth - 1), self._done.get(id(value.__self__))
            return value if owner is None else types.MethodType(function, owner)
        elif isinstance(value, functools.partial):
            words = {name: self._value(one, depth - 1) for name, one in value.keywords.items()}
            given = [self._value(one, depth - 1) for one in value.args]
            return functools.partial(self._value(value.func, depth - 1), *given, **words)
        elif isinstance(value, types.FunctionType) and value.__closure__:
            return self._function(value, depth)
        else:
            return value
        self._done[id(value)] = copied
        self._kept.append(value)
        return copied

    def _function(self, function: Any, depth: int) -> Any:
        """Return the function with what it holds of the modules exchanged for the copies."""
        cells, changed = [], False
        for cell in function.__closure__:
            try:
                before = cell.cell_contents
            except ValueError:  # not filled yet
                cells.append(cell)
                continue
            after = before if before is function else self._value(before, depth - 1)
            changed = changed or after is not before
            cells.append(cell if after is before else types.CellType(after))
        if not changed:
            return function
        copied = types.FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
        )
        copied.__kwdefaults__ = function.__kwdefaults__
        return copied


def _nothing(*_: Any, **__: Any) -> None:
    return None


def _own_class(module: Any) -> Any:
    """Return the user's class of a module; `fully_shard` puts one of its own before it."""
    kind = type(module)
    if any(base.__name__ == "FSDPModule" for base in kind.__bases__) and len(kind.__bases__) > 1:
        return kind.__bases__[1]
    return kind


def _is_of_wrapper(hook: Any) -> bool:
    while isinstance(hook, functools.partial):
        hook = hook.func
    owner = getattr(hook, "__self__", None)
    module = getattr(type(owner), "__module__", "") if owner is not None else getattr(hook, "__module__", "") or ""
    return str(module).startswith("torch.distributed")
