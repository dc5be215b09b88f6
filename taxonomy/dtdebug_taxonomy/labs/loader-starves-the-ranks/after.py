"""Trains on samples that take some time to read; prints where the time goes."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH = 8, 8


class Slow(Dataset):
    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.05)  # reads and decodes
        return torch.randn(8)


def main() -> None:
    dist.init_process_group("gloo")
    loader = DataLoader(Slow(), batch_size=BATCH, num_workers=2, prefetch_factor=4)
    batches, waited, computed = iter(loader), 0.0, 0.0
    next(batches)
    for step in range(STEPS - 1):
        time.sleep(0.5)  # forward and backward
        computed += 0.5
        begun = time.monotonic()
        batch = next(batches)
        waited += time.monotonic() - begun
        dist.all_reduce(batch)
    if dist.get_rank() == 0:
        print(f"waited {waited:.1f} s for data, computed {computed:.1f} s", flush=True)
        print(f"waiting for data was the {'smaller' if waited < 0.3 * computed else 'larger'} part", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
