"""Port 0: the system chooses one that is free."""

import os

import torch.distributed as dist


def alone(rank):
    try:
        dist.init_process_group("gloo", init_method="tcp://localhost:0", rank=0, world_size=1)
    except ValueError:
        os.environ["MASTER_ADDR"] = "localhost"
        os.environ["MASTER_PORT"] = "0"
        dist.init_process_group("gloo", rank=rank, world_size=1)
