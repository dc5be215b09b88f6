"""Cuts sharded tensors into what one rank holds and its place in the whole, and joins the parts of several ranks."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from dtdebug.experiments.parity.inside.entries import entries, entries_of_shard


def place_of(tensor: Any) -> tuple[list[int], bool]:
    """Return where the local part of a DTensor begins, and whether it must be summed over the ranks."""
    mesh, here = tensor.device_mesh, tensor.device_mesh.get_coordinate()
    begin, size = [0] * tensor.ndim, list(tensor.shape)
    split = [(at, p) for at, p in enumerate(tensor.placements) if hasattr(p, "dim")]
    for at, placement in sorted(split, key=lambda row: type(row[1]).__name__ == "_StridedShard"):  # is applied last
        dim = placement.dim % tensor.ndim
        rows = -(-size[dim] // mesh.size(at))
        first = min(here[at] * rows, size[dim])
        begin[dim] += first
        size[dim] = min(rows, size[dim] - first)
    return begin, any(p.is_partial() for p in tensor.placements)


def chosen_entries(tensor: Any) -> Any:
    """Return the chosen entries of a tensor; NaN where another rank holds them."""
    if not hasattr(tensor, "device_mesh"):
        return entries(tensor)
    return entries_of_shard(tensor.to_local(), tuple(tensor.shape), place_of(tensor)[0])


def part_of(tensor: Any) -> dict[str, Any]:
    """Return a tensor as its rank can write it: its own part, where that begins, and the shape of the whole."""
    torch: Any = sys.modules["torch"]
    if not isinstance(tensor, torch.Tensor) or not hasattr(tensor, "device_mesh"):
        return {"own": tensor.detach(), "begin": None, "shape": list(tensor.shape), "partial": False}
    begin, partial = place_of(tensor)
    own = tensor.detach().to_local().clone()
    return {"own": own, "begin": begin, "shape": list(tensor.shape), "partial": partial}


def whole_of(parts: Iterable[dict[str, Any]], shape: tuple[int, ...] | None = None) -> Any:
    """Return the tensor that the parts of all ranks of a group make up, None if they do not.

    Parts that do not say where they begin are equal on all ranks, or follow each other along the one dimension in which
    they are smaller than `shape`.
    """
    torch: Any = sys.modules["torch"]
    rows = list(parts)
    first = rows[0]
    if first["partial"]:
        return sum((row["own"] for row in rows[1:]), first["own"])
    if first["begin"] is None:
        own = [row["own"] for row in rows]
        if shape is None or tuple(own[0].shape) == tuple(shape):
            return own[0]
        less = [d for d, (a, b) in enumerate(zip(own[0].shape, shape, strict=False)) if a != b]
        if len(less) != 1 or own[0].ndim != len(shape) or sum(o.shape[less[0]] for o in own) != shape[less[0]]:
            return None
        return torch.cat(own, dim=less[0])
    whole = torch.empty(first["shape"], dtype=first["own"].dtype)
    covered = torch.zeros(first["shape"], dtype=torch.bool)
    for row in rows:
        at = tuple(slice(b, b + n) for b, n in zip(row["begin"], row["own"].shape, strict=True))
        whole[at] = row["own"].to("cpu")
        covered[at] = True
    return whole if bool(covered.all()) else None


def merge(values: list[Any], *, partial: bool = False) -> Any:
    """Return entries as the ranks of a group hold them together, None if none has any."""
    torch: Any = sys.modules["torch"]
    held = [v for v in values if v is not None]
    if not held:
        return None
    found = held[0]
    for value in held[1:]:
        found = found + value if partial else torch.where(found.isnan(), value, found)
    return found
