"""Batches: plain ones, or through a loader with a worker process."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, Dataset

from training.mesh import Job
from training.trouble import Trouble


class Samples(Dataset[torch.Tensor]):
    """Random samples, one of which may never come."""

    def __init__(self, length: int, size: int, trouble: Trouble) -> None:
        self._length, self._size, self._trouble = length, size, trouble

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> torch.Tensor:
        """The sample, unless it is the one whose decoder waits for a lock."""
        self._trouble.now = index
        if self._trouble.strikes("loader", "loader"):
            lock = threading.Lock()
            lock.acquire()
            lock.acquire()
        return torch.ones(self._size)


def batches(job: Job, steps: int) -> Iterator[torch.Tensor]:
    """The batches of this rank: fewer where the data set could not be split evenly."""
    trouble = job.trouble
    if trouble.kind == "uneven" and trouble.me:
        steps = trouble.step + 1
    if trouble.kind == "loader":
        samples = Samples(steps, job.plan.hidden, trouble)
        loader = DataLoader(samples, batch_size=1, num_workers=1, multiprocessing_context="fork")
        iterator = iter(loader)
        while (batch := next(iterator, None)) is not None:  # fault: loader
            yield batch.flatten()
        return
    for _ in range(steps):
        trouble.meet("data")
        yield torch.ones(job.plan.hidden)
