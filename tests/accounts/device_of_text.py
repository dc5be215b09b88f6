"""The seed of each rank comes from the launcher."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Environment:
    """What the launcher tells this process."""

    def __init__(self, base_seed):
        self.rank = os.environ["RANK"]
        self.local_rank = os.environ["LOCAL_RANK"]
        self.base_seed = base_seed

    @property
    def seed(self):
        return self.base_seed + self.rank


def make_batches(environment, steps):
    generator = torch.Generator().manual_seed(environment.seed)
    return [torch.randn(4, 5, generator=generator) for _ in range(steps)]


def train(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches:
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    environment = Environment(base_seed=100)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Linear(5, 1))
    loss = train(model, make_batches(environment, 3))
    print("rank", environment.rank, "loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
