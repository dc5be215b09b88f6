"""Finds and replaces the tensors within the inputs and outputs of a model."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from typing import Any

_DEPTH, _WIDTH = 6, 4096


def tensors_in(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """Yield the tensors within a value, in a fixed order."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, (list, tuple)):
        for one in value[:_WIDTH]:
            yield from tensors_in(one, depth - 1)
    elif depth and (isinstance(value, dict) or hasattr(value, "items")):
        for _, one in list(value.items())[:_WIDTH]:
            yield from tensors_in(one, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name, None), depth - 1)


def with_tensors(value: Any, change: Callable[[Any], Any], depth: int = _DEPTH) -> Any:
    """Return the value with its tensors replaced; what is no plain container is returned as it is."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return change(value)
    if not depth:
        return value
    if type(value) in (list, tuple):
        return type(value)(with_tensors(one, change, depth - 1) for one in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(with_tensors(one, change, depth - 1) for one in value))
    if type(value) is dict:
        return {name: with_tensors(one, change, depth - 1) for name, one in value.items()}
    return value


def is_plain(value: Any, depth: int = _DEPTH) -> bool:
    """True if the value consists of tensors, numbers, text and plain containers, so that another rank can have it."""
    torch: Any = sys.modules["torch"]
    if value is None or type(value) in (bool, int, float, str, torch.dtype, torch.Size):
        return True
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return bool(value.layout is torch.strided)
    if depth and type(value) in (list, tuple):
        return all(is_plain(one, depth - 1) for one in value)
    if depth and type(value) is dict:
        return all(is_plain(name, 1) and is_plain(one, depth - 1) for name, one in value.items())
    return False
