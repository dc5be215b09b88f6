"""Start from the variables of the launcher."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def read_launch():
    """Rank, world size and local rank of this process."""
    return {
        "rank": int(os.environ["SLURM_PROCID"]),
        "world": int(os.environ["SLURM_NTASKS"]),
        "local": int(os.environ["SLURM_LOCALID"]),
    }


def start(backend="gloo"):
    launch = read_launch()
    dist.init_process_group(
        backend, rank=launch["rank"], world_size=launch["world"], timeout=timedelta(seconds=60)
    )
    return launch


class Learner:
    def __init__(self, width):
        self.model = DDP(nn.Linear(width, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, x, y):
        loss = nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    launch = start()
    learner = Learner(7)
    for _ in range(3):
        loss = learner.step(torch.randn(4, 7), torch.randn(4, 1))
    if launch["rank"] == 0:
        print("loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
