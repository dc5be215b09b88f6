"""Trains in bfloat16 to halve memory and communication."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    model = DistributedDataParallel(torch.nn.Linear(8, 1).bfloat16())
    for step in range(2):
        x = torch.randn(4, 8)
        model(x).float().square().mean().backward()
    if dist.get_rank() == 0:
        print(f"finished {step + 1} steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
