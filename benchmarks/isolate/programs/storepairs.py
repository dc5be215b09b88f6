"""Ranks meet in pairs over the store, and with an odd number the last one has nobody to wait for."""

import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    store = dist.distributed_c10d._get_default_store()
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    for step in range(3):
        model(torch.randn(2, 4)).sum().backward()
        store.set(f"{step}/{rank}", "done")
        if rank % 2 == 0 and world > 1:
            store.wait([f"{step}/{rank + 1}"], datetime.timedelta(minutes=30))
    dist.destroy_process_group()


main()
