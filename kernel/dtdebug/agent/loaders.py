"""What can be told of a PyTorch data loader without calling any code of the user."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

_SAFE = ("builtins", "numpy", "torch.utils.data")
"""Modules whose `__len__` returns what it knows already."""


def loader_facts(local: Mapping[str, object]) -> dict[str, str]:
    """Length of the data, batches, sampler, workers of the first data loader among local variables."""
    data: Any = sys.modules.get("torch.utils.data")
    kind = getattr(data, "DataLoader", None)
    if kind is None:
        return {}
    loader = next((value for value in local.values() if kind in type(value).__mro__), None)
    return _facts(_attributes(loader)) if loader is not None else {}


def _facts(loader: Mapping[str, Any]) -> dict[str, str]:
    sampler, size = loader.get("sampler"), loader.get("batch_size")
    dataset = length(loader.get("dataset"))
    samples = _attributes(sampler).get("num_samples")
    if not isinstance(samples, int) and type(sampler).__name__ in ("SequentialSampler", "RandomSampler"):
        samples = dataset
    facts = {
        "dataset length": dataset,
        "samples": samples if isinstance(samples, int) else None,
        "batch size": size if isinstance(size, int) else None,
        "sampler": type(sampler).__name__,
        "loader workers": loader.get("num_workers"),
    }
    if isinstance(samples, int) and isinstance(size, int) and size > 0:
        facts["batches"] = samples // size if loader.get("drop_last") else math.ceil(samples / size)
    return {name: str(value) for name, value in facts.items() if value is not None}


def length(dataset: object) -> int | None:
    """Its length, if that takes no code but Python's, numpy's or torch's own."""
    function = getattr(type(dataset), "__len__", None)
    home = getattr(function, "__module__", None) or type(dataset).__module__
    if function is None or not home.startswith(_SAFE):
        return None
    attributes = _attributes(dataset)
    if "indices" in attributes and length(attributes["indices"]) is None:  # torch's Subset asks its indices
        return None
    try:
        return len(dataset)  # type: ignore[arg-type]  # its type has __len__
    except Exception:
        return None


def _attributes(value: object) -> Mapping[str, Any]:
    """The attributes that are stored in the object: no property, no __getattr__."""
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return found if isinstance(found, dict) else {}
