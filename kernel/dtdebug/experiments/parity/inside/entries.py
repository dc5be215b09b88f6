"""Takes the same entries of a tensor on every rank: all of a small one, a fixed random choice of a large one."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

MOST = 1 << 14
"""Maximum entries of one tensor."""
_indexes: dict[int, Any] = {}


def index_of(numel: int) -> Any:
    """Return the chosen places of a flat tensor of that size, in order; the program's generators are not used."""
    torch: Any = sys.modules["torch"]
    if numel not in _indexes:
        if numel <= MOST:
            _indexes[numel] = torch.arange(numel)
        else:
            own = torch.Generator().manual_seed(numel)
            _indexes[numel] = torch.randint(0, numel, (MOST,), generator=own).unique()
    return _indexes[numel]


def entries(tensor: Any) -> Any:
    """Return the chosen entries of a tensor, in double precision on the CPU."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        if tensor.is_sparse:
            tensor = tensor.to_dense()
        flat = tensor.detach().reshape(-1)
        return flat[index_of(flat.numel()).to(flat.device)].to("cpu", torch.float64)


def entries_of_shard(local: Any, shape: tuple[int, ...], begin: Sequence[int]) -> Any:
    """Return the same of a part that begins at a place of the whole tensor; NaN where another rank has them."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        index = index_of(math.prod(shape))
        at = [i - b for i, b in zip(torch.unravel_index(index, shape), begin, strict=True)]
        held = torch.ones(len(index), dtype=torch.bool)
        for places, size in zip(at, local.shape, strict=True):
            held &= (places >= 0) & (places < size)
        found = torch.full((len(index),), float("nan"), dtype=torch.float64)
        if bool(held.any()):
            chosen = local.detach()[tuple(places[held].to(local.device) for places in at)] if at else local.detach()
            found[held] = chosen.to("cpu", torch.float64)
        return found
