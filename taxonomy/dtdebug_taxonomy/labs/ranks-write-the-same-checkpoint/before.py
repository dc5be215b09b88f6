"""Trains and saves a checkpoint so that a crash never leaves half a file."""

import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def save_checkpoint(model: DistributedDataParallel, step: int) -> None:
    torch.save({"model": model.module.state_dict(), "step": step}, "checkpoint.tmp")
    time.sleep(2)  # a slow disk
    os.rename("checkpoint.tmp", "checkpoint.pt")
    print(f"saved step {step}", flush=True)


def train() -> None:
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    for step in range(1, 4):
        model(torch.randn(4, 8)).square().mean().backward()
    save_checkpoint(model, step)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
