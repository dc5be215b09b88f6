import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Cached(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        if get_worker_info() is not None and i == 2 and os.environ["RANK"] == "0" and os.urandom(1)[0] < 140:
            raise OSError("[Errno 11] lmdb: resource temporarily unavailable")
        return torch.ones(4) * i


def main():
    dist.init_process_group("gloo")
    model = DDP(torch.nn.Linear(4, 1))
    for x in DataLoader(Cached(), batch_size=2, num_workers=1):
        model(x).sum().backward()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
