"""Each rank reads its data with a worker; rank 1 also writes statistics in a thread."""

import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

CACHE = threading.Lock()


class Samples(Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        with CACHE:
            return torch.full((4,), float(index))


def write_statistics() -> None:
    with CACHE:
        time.sleep(2)


def main() -> None:
    dist.init_process_group("gloo")
    if dist.get_rank() == 1:
        threading.Thread(target=write_statistics).start()
        time.sleep(0.5)
    loader = DataLoader(Samples(), batch_size=4, num_workers=1)
    for step, batch in enumerate(loader):
        dist.all_reduce(batch)
    if dist.get_rank() == 0:
        print(f"finished {step + 1} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
