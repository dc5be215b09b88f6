"""Lengths of containers, data sets, samplers and loaders, without running code of the program's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dtdebug.account.objects import (
    MISSING,
    attribute,
    is_exactly,
    is_kind,
    is_of_torch,
    is_tensor,
    loaded,
    tensor_property,
)

_SIZED = (list, tuple, dict, str, bytes, set, frozenset, range)
_DEEPEST = 6

Own = Callable[[Any], Any]


def length(value: Any, own: Own, depth: int = 0) -> int | None:
    """Return `len(value)`, or None if it can't be had; `own` reads `__len__` of a class of the program's."""
    if depth > _DEEPEST or value is MISSING:
        return None
    if is_exactly(value, _SIZED):
        return len(value)
    if is_tensor(value):
        shape = tensor_property(value, "shape")
        return int(shape[0]) if shape is not MISSING and len(shape) and type(shape[0]) is int else None
    if type(value) is loaded("numpy", "ndarray"):
        return int(value.shape[0]) if value.shape else None
    if is_kind(value, loaded("torch.utils.data", "DataLoader")) and is_of_torch(type(value)):
        return _loader(value, own, depth)
    if is_of_torch(type(value)):
        return _of_torch(value, own, depth)
    found = own(value)
    return found if type(found) is int and found >= 0 else None


def _loader(value: Any, own: Own, depth: int) -> int | None:
    """Return the number of batches of a loader."""
    size, sampler = attribute(value, "batch_size"), attribute(value, "sampler")
    if type(size) is not int or size <= 0:
        batches = attribute(value, "batch_sampler")
        return None if batches is None else length(batches, own, depth + 1)
    samples = length(sampler, own, depth + 1)
    if samples is None:
        return None
    return samples // size if attribute(value, "drop_last") is True else math.ceil(samples / size)


def _of_torch(value: Any, own: Own, depth: int) -> int | None:
    """Return the length of a data set or a sampler that torch defines."""
    for name in ("num_samples", "_num_samples"):
        number = attribute(value, name)
        if type(number) is int:
            return number
    tensors = attribute(value, "tensors")
    if type(tensors) is tuple and tensors:
        return length(tensors[0], own, depth + 1)
    ends = attribute(value, "cumulative_sizes")
    if type(ends) is list and ends and type(ends[-1]) is int:
        return ends[-1]
    for name in ("indices", "data_source"):
        inner = attribute(value, name)
        if inner is not MISSING and inner is not None:
            return length(inner, own, depth + 1)
    return None
