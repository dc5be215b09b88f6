"""Fingerprints a tensor's bits, at about the cost of reading it once.

Each 8 bytes are multiplied by an odd weight of their place, and summed modulo 2**64: a change of one value always
changes the sum, several changes cancel with a probability of about 2**-64, and swapped values are detected (unlike by
`torch.hash_tensor`, an exclusive or).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

_BLOCK = 1 << 14
_CHUNK = 1 << 23
"""Number of 8-byte words summed at a time, so that copies stay small."""
_MASK = (1 << 64) - 1
_MULTIPLIER = 0x9E3779B97F4A7C15
_weights: dict[Any, Any] = {}


class Sums(NamedTuple):
    """Weighted sums of a tensor, still on its device."""

    size: int
    """Bytes of the tensor."""
    parts: list[list[Any]]
    """The bytes after the last whole word, then the sums of each chunk."""

    def fingerprint(self, values: Sequence[Sequence[int]]) -> int:
        """Return the fingerprint from the values of all parts."""
        if not self.size:
            return 0
        rest, *chunks = values
        total = (self.size + int.from_bytes(bytes(rest), "little")) * _MULTIPLIER & _MASK
        for chunk in chunks:
            part = 0
            for value in chunk:
                part = (part * _MULTIPLIER + value) & _MASK
            total = (total * _MULTIPLIER + part) & _MASK
        return total


def fingerprint(tensor: Any) -> int | None:
    """Return 64 bits of the tensor's contents, or None if it has no plain values (sparse, meta, encrypted).

    On an accelerator it waits for the values: the caller decides when.
    """
    found = sums(tensor)
    if found is None:
        return None
    return found.fingerprint(
        [
            [value for part in parts for value in (part.tolist() if part.dim() else (part.item(),))]
            for parts in found.parts
        ]
    )


def sums(tensor: Any) -> Sums | None:
    """Start a fingerprint without waiting for values; None as for `fingerprint`."""
    torch: Any = sys.modules["torch"]
    if tensor.is_meta or tensor.layout != torch.strided:
        return None
    local = getattr(tensor, "_local_tensor", None)
    plain = (tensor if local is None else local).detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
    if not plain.numel():
        return Sums(0, [])
    data = in_line(plain, torch)
    size = data.numel() * data.element_size()
    whole = size // 8 * 8
    parts: list[list[Any]] = [[]]
    if whole < size:
        data = data.view(torch.uint8)
        parts[0].append(data[whole:].to(torch.int64))
        data = data[:whole]
    if whole:
        if data.data_ptr() % 8 or data.storage_offset() * data.element_size() % 8:
            data = data.clone()
        words = data.view(torch.int64)
        if whole // 8 > _CHUNK:
            parts += [_sums(torch, words[index : index + _CHUNK]) for index in range(0, whole // 8, _CHUNK)]
        else:
            parts.append(_sums(torch, words))
    return Sums(size, parts)


def in_line(plain: Any, torch: Any) -> Any:
    """Return the tensor's values contiguously, so that they can be viewed as another type."""
    data = plain.contiguous().view(-1)
    if data.stride(0) != 1:  # a single value, which counts as contiguous
        data = data.clone(memory_format=torch.contiguous_format)
    return data


def _sums(torch: Any, words: Any) -> list[Any]:
    weights = _weights_on(torch, words.device)
    many = words.numel() // _BLOCK * _BLOCK
    found = []
    if many:
        rows = words[:many].view(-1, _BLOCK)
        found.append(rows.mv(weights) if words.device.type == "cpu" else (rows * weights).sum(1))
    if many < words.numel():
        last = words[many:] if many else words
        heads = weights[: last.numel()]
        found.append(last.dot(heads) if last.device.type == "cpu" else (last * heads).sum())
    return found


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
