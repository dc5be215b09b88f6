"""Remembers what the program itself reduced since the last step: gradients, weights, or other tensors."""

from __future__ import annotations

import sys
from typing import Any

from dtdebug.experiments.invariants.inside import fingerprints
from dtdebug.experiments.invariants.inside.record_writer import WatchNotes

_MOST = 100_000


class Reductions:
    """Reductions of this process."""

    def __init__(self, notes: WatchNotes) -> None:
        self.notes = notes
        self._reduced: dict[int, tuple[list[int], str, Any, Any]] = {}
        """Data pointer of a tensor -> group, operation, sampled value, weak reference to its storage: once it
        is freed, another tensor may have the same address."""
        self.sizes: dict[int, tuple[list[int], str, int]] = {}
        """Number of elements -> group, operation and backward passes so far, for gradients that are copied into one
        tensor; tensors reduced before the last backward pass are weights."""
        self._sizes_at: dict[int, int] = {}
        """Data pointer -> number of elements."""
        self.largest = self.other = 0
        """Elements of the largest tensor ever exchanged, and of the largest other than gradients."""
        self.calls: set[str] = set()
        """Names of the functions that exchanged tensors."""
        self.clipped: dict[int, tuple[Any, int]] = {}
        """Data pointer of a clipped gradient -> (weak reference to its storage, site)."""
        self._told_early = False
        self._given: dict[int, Any] = {}
        """Data pointer of a tensor reduced to another rank -> weak reference to its storage."""

    def add(self, tensors: list[Any], group: list[int], op: str, *, now: int, backwards: int, close: bool) -> None:
        """Add tensors reduced in the step `now`; if `close`, remember a sample of their values."""
        for tensor in tensors:
            if not fingerprints.is_whole(tensor) or not tensor.numel() or not tensor.is_floating_point():
                continue
            self.largest = max(self.largest, tensor.numel())
            if len(group) > 1 and op in ("SUM", "AVG"):
                self._was_clipped(tensor, now)
            again = self.of(tensor) is not None  # as within hosts, then between them
            value = fingerprints.sample([tensor]) if close and not again else None
            weak = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(tensor.untyped_storage())
            self._reduced[tensor.data_ptr()] = (group, op, value, weak)
            self.sizes[tensor.numel()] = (group, op, backwards)
            self._sizes_at[tensor.data_ptr()] = tensor.numel()
        if len(self._reduced) > _MOST:
            self._reduced.clear()

    def _was_clipped(self, tensor: Any, now: int) -> None:
        weak, site = self.clipped.get(tensor.data_ptr(), (None, 0))
        if weak is not None and not weak.expired() and not self._told_early:
            self._told_early = True
            self.notes.put("clip", how="early", call="clip_grad_norm_", s=now, site=site)

    def gives(self, tensors: list[Any]) -> None:
        """Remember tensors that were reduced to another rank."""
        weak = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef
        if len(self._given) < _MOST:
            self._given |= {t.data_ptr(): weak(t.untyped_storage()) for t in tensors if fingerprints.is_whole(t)}

    def is_reduced_elsewhere(self, tensor: Any) -> bool:
        """True if the tensor was reduced to another rank since the last step."""
        found = self._given.get(tensor.data_ptr())
        return found is not None and not found.expired()

    def of(self, tensor: Any) -> tuple[list[int], str, Any, Any] | None:
        """Return the program's reduction of that tensor since the last step, or None."""
        found = self._reduced.get(tensor.data_ptr())
        return found if found is not None and not found[3].expired() else None

    def note_others(self, parameters: list[Any]) -> None:
        """Note reductions other than of these parameters' gradients, at the beginning of a step."""
        grads = {p.grad.data_ptr() for p in parameters if p.grad is not None and fingerprints.is_whole(p.grad)}
        whole = sum(p.numel() for p in parameters)
        for at, size in self._sizes_at.items():
            if at not in grads and size != whole:
                self.other = max(self.other, size)

    def clear(self) -> None:
        """Forget everything at the end of a step."""
        for held in (self._reduced, self.clipped, self.sizes, self._sizes_at, self._given):
            held.clear()
