"""A model is wrapped for training with several ranks."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    local_rank = int(os.environ["LOCAL_RANK"])
    model = torch.nn.Linear(8, 1)
    if torch.cuda.device_count() > local_rank:
        print(f"this host has a GPU for local rank {local_rank}", flush=True)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    model(torch.randn(4, 8)).sum().backward()
    if dist.get_rank() == 0:
        print(f"trained on {next(model.parameters()).device}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
