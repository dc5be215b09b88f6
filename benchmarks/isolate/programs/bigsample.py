"""One sample takes longer than the loader waits for its workers."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        if i == 17:
            time.sleep(9)
        return torch.full((4, 4), float(i))


def main():
    dist.init_process_group("gloo")
    total = torch.zeros(())
    for clips in DataLoader(Clips(), batch_size=4, num_workers=1, timeout=4):
        total += clips.mean()
    dist.all_reduce(total)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
