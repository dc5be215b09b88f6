"""Summarises tensors in few bytes: hashes of their bits, and samples that distinguish rounding from other values."""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dtdebug.experiments.invariants.inside.record_writer import json_number

_SAMPLES, _BYTES, _DEPTH, _TENSORS = 12, 1 << 16, 4, 16
_ROWS, _ROW, _TELLS = 32, 256, 4
"""Maximum samples of a batch to hash, values of each (`_BYTES` in all), and minimum values that identify a sample."""
_BITS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}


def is_whole(tensor: Any) -> bool:
    """True for a whole tensor of this rank: not a shard, whose values differ by design, and not without data."""
    torch: Any = sys.modules["torch"]
    kind = type(tensor)
    return (
        (kind is torch.Tensor or kind is torch.nn.Parameter)
        and not hasattr(tensor, "_fsdp_flattened")
        and tensor.device.type != "meta"
        and tensor.layout is torch.strided
        and not tensor.is_quantized
        and not getattr(tensor, "ds_id", None)  # DeepSpeed's partitioned parameters
    )


def hashes(tensors: Sequence[Any]) -> tuple[str, list[float | str]]:
    """Return a hash of the bits of all tensors, and some of their values; waits for a device once."""
    torch: Any = sys.modules["torch"]
    if not tensors:
        return "", []
    with torch.no_grad():
        sums = [one for tensor in tensors for one in _sums(tensor)]
        values = sample(tensors)
        home = sums[0].device
        numbers = torch.stack([one.to(home) for one in sums]).tolist()
    text = ",".join(map(str, numbers))
    return f"{zlib.crc32(text.encode()):08x}{zlib.adler32(text.encode()):08x}", values


def _sums(tensor: Any) -> Iterator[Any]:
    """Yield the sum of its bits as 8-byte words modulo 2**64, which is the cheapest to read, and that of the rest."""
    torch: Any = sys.modules["torch"]
    bits = tensor.detach()
    if bits.is_complex():
        bits = torch.view_as_real(bits)
    bits = bits.reshape(-1)
    each = 8 // bits.element_size()
    whole = bits.numel() // each * each
    body = bits[:whole] if whole < bits.numel() else bits
    if body.storage_offset() % each:  # a view that begins within a word
        body = body.clone()
    yield body.view(torch.int64).sum()
    if whole < bits.numel():
        yield bits[whole:].view(getattr(torch, _BITS[bits.element_size()])).sum(dtype=torch.int64)


def sample(tensors: Sequence[Any], most: int = _SAMPLES) -> list[float | str]:
    """Return values at fixed places of some of the tensors."""
    torch: Any = sys.modules["torch"]
    full = [t for t in tensors if t.numel()]
    chosen = full[:: max(1, -(-len(full) // most))] if full else []
    if not chosen:
        return []
    with torch.no_grad():
        home = chosen[0].device
        picked = [
            t.detach()[tuple((s - 1) // 2 for s in t.shape)].to(device=home, dtype=torch.float64)
            for t in chosen
            if not t.is_complex()
        ]
        return [json_number(v) for v in torch.stack(picked).tolist()] if picked else []


def spread(tensor: Any) -> list[float | str]:
    """Return values at evenly spaced places of one tensor."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        picked = flat[:: max(1, -(-flat.numel() // _SAMPLES))]
        return [] if picked.is_complex() else [json_number(v) for v in picked.to(torch.float64).tolist()]


def finite(tensors: Sequence[Any]) -> bool:
    """True if no value is NaN or infinite: usually their sums show it, which is cheap."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        floats = [t.detach() for t in tensors if t.is_floating_point()]
        if not floats:
            return True
        home = floats[0].device
        sums = torch.stack([one.sum().to(device=home, dtype=torch.float64) for one in floats])
        if all(map(math.isfinite, sums.tolist())):
            return True
        return all(bool(torch.isfinite(one).all()) for one in floats)  # or a sum of large values


def digest(value: Any) -> str:
    """Return a hash of the tensors in a batch, from a part of each, or "" if there are none."""
    crc, any_ = 0, False
    for tensor in _some(_tensors(value, _DEPTH)):
        any_ = True
        crc = zlib.crc32(_bytes(tensor), crc)
        crc = zlib.crc32(str(tuple(tensor.shape)).encode(), crc)
    return f"{crc:08x}" if any_ else ""


def rows(value: Any) -> list[int]:
    """Return hashes of some samples in a batch, from its tensors with several numbers per sample."""
    torch: Any = sys.modules["torch"]
    held = [t.detach() for t in _some(_tensors(value, _DEPTH)) if t.ndim > 1 and t.device.type == "cpu"]
    held = [t for t in held if len(t) == len(held[0]) and not t.is_complex()]
    if sum(t[0].numel() for t in held) < _TELLS:
        return []
    found = [0] * len(held[0][:: max(1, -(-len(held[0]) // _ROWS))])
    for tensor in held:
        with torch.no_grad():
            some = tensor[:: max(1, -(-len(tensor) // _ROWS))].flatten(1)
            some = some[:, :: max(1, -(-some.shape[1] // _ROW))]
        text, each = _bytes(some), some.shape[1] * some.element_size()
        found = [zlib.crc32(text[n * each : (n + 1) * each], crc) for n, crc in enumerate(found)]
    return found


def kinds(value: Any) -> list[str]:
    """Return the types and devices of the tensors in a batch."""
    return [f"{str(t.dtype)[6:]}@{t.device.type}" for t in _some(_tensors(value, _DEPTH))]


def _some(tensors: Iterable[Any]) -> Iterator[Any]:
    for place, tensor in enumerate(tensors):
        if place == _TENSORS:
            return
        yield tensor


def _tensors(value: Any, depth: int) -> Iterator[Any]:
    torch: Any = sys.modules["torch"]
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        if value.numel() and value.device.type != "meta" and value.layout is torch.strided:
            yield value
    elif depth and isinstance(value, dict):
        for inner in list(value.values())[:32]:
            yield from _tensors(inner, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for inner in value[:32]:
            yield from _tensors(inner, depth - 1)


def _bytes(tensor: Any) -> bytes:
    """Return the bits of its beginning and end."""
    torch: Any = sys.modules["torch"]
    with torch.no_grad():
        flat = tensor.detach().reshape(-1)
        most = max(1, _BYTES // max(1, flat.element_size()))
        if flat.numel() > most:
            flat = torch.cat([flat[: most // 2], flat[-(most // 2) :]])
        flat = flat.cpu().contiguous()
        if flat.is_complex():
            flat = torch.view_as_real(flat).contiguous()
        bits = flat.view(torch.uint8)
        try:
            return bytes(bits.numpy().data)
        except (RuntimeError, TypeError):  # a torch without numpy
            return bytes(bits.tolist())
