"""Fingerprints of tensors on a GPU for which the program does not wait: the GPU writes their sums to host memory.

Whether they are there is seen by reading that memory alone. A question to CUDA would need care (another thread may
capture a graph), and to wait would keep the program from running ahead of its GPU.
"""

from __future__ import annotations

import time
from typing import Any

from dtdebug.course.inside.hashing import Sums, sums


class Awaited:
    """The fingerprints of one call, under way."""

    def __init__(self, tensors: list[Any], torch: Any) -> None:
        self._sums: list[Sums | None] = [sums(tensor) for tensor in tensors]
        flat = [part.view(-1) for s in self._sums if s is not None for parts in s.parts for part in parts]
        count = sum(part.numel() for part in flat)
        self._there = torch.zeros(count + 1, dtype=torch.int64, pin_memory=bool(flat) and flat[0].is_cuda)
        if flat:
            self._there[:-1].copy_(torch.cat(flat), non_blocking=True)
        # the mark follows the values on their stream, so that whoever sees it sees them
        self._there[-1:].copy_(flat[0].new_ones(1) if flat else torch.ones(1, dtype=torch.int64), non_blocking=True)

    def ready(self, patience: float = 0.0) -> bool:
        """Whether the GPU has come so far; waits at most for so many seconds."""
        until = time.monotonic() + patience
        while not self._there[-1].item():
            if time.monotonic() >= until:
                return False
            time.sleep(0.001)
        return True

    def prints(self) -> list[int | None]:
        """One for each tensor; of use once they are ready."""
        values = iter(self._there[:-1].tolist())
        return [
            None
            if s is None
            else s.fingerprint([[next(values) for part in parts for _ in range(part.numel())] for parts in s.parts])
            for s in self._sums
        ]


def can_follow(tensors: list[Any]) -> bool:
    """All are on one GPU."""
    return bool(tensors) and tensors[0].is_cuda and len({t.device for t in tensors}) == 1
