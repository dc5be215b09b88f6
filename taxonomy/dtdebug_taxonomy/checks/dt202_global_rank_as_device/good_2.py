import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP


def demo(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(dist.get_rank())
    DDP(torch.nn.Linear(10, 10).to(rank), device_ids=[rank])


if __name__ == "__main__":
    mp.spawn(demo, args=(2,), nprocs=2)
