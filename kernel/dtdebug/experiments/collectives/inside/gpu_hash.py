"""Fingerprints tensors on a GPU without making the program wait: the GPU writes their sums to host memory.

Reading that memory alone shows whether they have arrived. A query to CUDA would need care (another thread may be
capturing a graph), and waiting would keep the program from running ahead of its GPU.
"""

from __future__ import annotations

import time
from typing import Any

from dtdebug.experiments.collectives.inside.tensor_hash import Sums, sums


class PendingPrints:
    """Pending fingerprints of one call."""

    def __init__(self, tensors: list[Any], torch: Any) -> None:
        self._sums: list[Sums | None] = [sums(tensor) for tensor in tensors]
        flat = [part.view(-1) for s in self._sums if s is not None for parts in s.parts for part in parts]
        count = sum(part.numel() for part in flat)
        self._there = torch.zeros(count + 1, dtype=torch.int64, pin_memory=bool(flat) and flat[0].is_cuda)
        if flat:
            self._there[:-1].copy_(torch.cat(flat), non_blocking=True)
        # the mark follows the values on their stream: once it is visible, they are too
        self._there[-1:].copy_(flat[0].new_ones(1) if flat else torch.ones(1, dtype=torch.int64), non_blocking=True)

    def ready(self, patience: float = 0.0) -> bool:
        """True once the GPU has written the sums; waits for at most `patience` seconds."""
        until = time.monotonic() + patience
        while not self._there[-1].item():
            if time.monotonic() >= until:
                return False
            time.sleep(0.001)
        return True

    def prints(self) -> list[int | None]:
        """Return one fingerprint for each tensor; valid once they are ready."""
        values = iter(self._there[:-1].tolist())
        return [
            None
            if s is None
            else s.fingerprint([[next(values) for part in parts for _ in range(part.numel())] for parts in s.parts])
            for s in self._sums
        ]


def can_follow(tensors: list[Any]) -> bool:
    """True if all tensors are on one GPU."""
    return bool(tensors) and tensors[0].is_cuda and len({t.device for t in tensors}) == 1
