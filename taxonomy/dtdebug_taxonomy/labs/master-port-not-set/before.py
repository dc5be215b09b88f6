"""Two ranks that the program starts itself, without a launcher."""

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    if rank == 0:
        print(f"the sum is {total.item():g}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("", 0))
        free = probe.getsockname()[1]
    mp.spawn(train, args=(free,), nprocs=2)
