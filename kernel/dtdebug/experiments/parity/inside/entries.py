"""Takes the same entries of a tensor on every rank: all of a small one, a fixed random choice of a large one."""

from __future__ import annotations

import sys
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


def entries_of_shard(local: Any, numel: int, begin: int) -> Any:
    """Return the same of a part that begins at a flat place of the whole tensor; NaN where another rank has them."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        at = index_of(numel) - begin
        flat = local.detach().reshape(-1)
        held = (at >= 0) & (at < flat.numel())
        found = torch.full((len(at),), float("nan"), dtype=torch.float64)
        found[held] = flat[at[held].to(flat.device)].to("cpu", torch.float64)
        return found
