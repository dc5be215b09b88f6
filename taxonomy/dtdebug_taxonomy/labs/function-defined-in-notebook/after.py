import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def train(rank: int, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    total = torch.tensor([rank + 1.0])
    dist.all_reduce(total)
    print(f"rank {rank}: the sum is {total.item():g}", flush=True)
    dist.destroy_process_group()


mp.start_processes(train, args=(29517,), nprocs=2, start_method="fork")
