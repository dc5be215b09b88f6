import os

import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


if __name__ == "__main__":
    per_node = 8
    first = int(os.environ.get("RANK", 0)) * per_node
    mp.spawn(worker, args=(first,), nprocs=per_node)
