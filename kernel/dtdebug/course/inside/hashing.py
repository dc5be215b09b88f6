"""A fingerprint of a tensor's bits that costs about as much as reading it once.

Each 8 bytes are multiplied by an odd weight of their place, and summed modulo 2**64: a change of one value always
changes the sum, several changes cancel with a chance of about 2**-64, and values that change places are seen (which
`torch.hash_tensor`, an exclusive or, does not see).
"""

from __future__ import annotations

import sys
from typing import Any

_BLOCK = 1 << 14
_CHUNK = 1 << 23
"""Bytes of 8 that are weighed at a time, so that what is copied stays small."""
_MASK = (1 << 64) - 1
_MULTIPLIER = 0x9E3779B97F4A7C15
_weights: dict[Any, Any] = {}


def fingerprint(tensor: Any) -> int | None:
    """64 bits of what the tensor holds; None where it has no plain values (sparse, meta, encrypted).

    On an accelerator it waits for the values: the caller decides when.
    """
    torch: Any = sys.modules["torch"]
    if tensor.is_meta or tensor.layout != torch.strided:
        return None
    local = getattr(tensor, "_local_tensor", None)
    plain = (tensor if local is None else local).detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if not plain.numel():
        return 0
    data = in_line(plain, torch)
    size = data.numel() * data.element_size()
    rest, whole = 0, size // 8 * 8
    if whole < size:
        data = data.view(torch.uint8)
        rest = int.from_bytes(bytes(data[whole:].tolist()), "little")
        data = data[:whole]
    total: int = (size * _MULTIPLIER + rest * _MULTIPLIER) & _MASK
    if whole:
        if data.data_ptr() % 8 or data.storage_offset() * data.element_size() % 8:
            data = data.clone()
        words = data.view(torch.int64)
        for index in range(0, whole // 8, _CHUNK):
            part = _sum(torch, words[index : index + _CHUNK] if whole // 8 > _CHUNK else words)
            total = (total * _MULTIPLIER + part) & _MASK
    return total


def in_line(plain: Any, torch: Any) -> Any:
    """The tensor's values one behind the other, so that they can be viewed as another type."""
    data = plain.contiguous().view(-1)
    if data.stride(0) != 1:  # of a single value, which counts as contiguous
        data = data.clone(memory_format=torch.contiguous_format)
    return data


def _sum(torch: Any, words: Any) -> int:
    weights = _weights_on(torch, words.device)
    many = words.numel() // _BLOCK * _BLOCK
    total = 0
    if many:
        rows = words[:many].view(-1, _BLOCK)
        sums = rows.mv(weights) if words.device.type == "cpu" else (rows * weights).sum(1)
        for value in sums.tolist():
            total = (total * _MULTIPLIER + value) & _MASK
    if many < words.numel():
        last = words[many:] if many else words
        heads = weights[: last.numel()]
        value = (last.dot(heads) if last.device.type == "cpu" else (last * heads).sum()).item()
        total = (total * _MULTIPLIER + value) & _MASK
    return total


def _weights_on(torch: Any, device: Any) -> Any:
    found = _weights.get(device)
    if found is None:
        state, values = 1, []
        for _ in range(_BLOCK):  # splitmix64: the same on every machine and release
            state = (state + _MULTIPLIER) & _MASK
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
            value = (z ^ (z >> 31)) | 1
            values.append(value - (1 << 64) if value >> 63 else value)
        found = _weights[device] = torch.tensor(values, dtype=torch.int64, device=device)
    return found
