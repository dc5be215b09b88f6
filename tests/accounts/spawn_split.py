import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

BATCH = 10


def share_of(batch, world, rank):
    sizes = [batch // world] * world
    sizes[-1] += batch % world
    rows = torch.randn(batch, 3)
    return rows.split(sizes[:-1])[rank]


def work(rank, world):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = os.environ.get("PORT_FOR_SPAWN", "29611")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    mine = share_of(BATCH, world, rank)
    dist.all_reduce(mine)


if __name__ == "__main__":
    mp.spawn(work, args=(3,), nprocs=3)
