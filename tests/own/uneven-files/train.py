import os
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def make_files(n=21):
    return [f"shard-{i:03d}.pt" for i in range(n)]


def read(path):
    random.seed(path)
    return torch.tensor([random.random() for _ in range(8)])


class Trainer:
    def __init__(self, rank, world):
        self.rank = rank
        self.world = world
        self.files = make_files()
        self.my_files = self.files[self.rank :: self.world]
        self.model = DDP(nn.Linear(8, 1))
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def fit(self, epochs=2):
        for _ in range(epochs):
            for path in self.my_files:
                loss = self.model(read(path)).sum()
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            dist.barrier()


def main():
    dist.init_process_group("gloo")
    Trainer(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])).fit()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
