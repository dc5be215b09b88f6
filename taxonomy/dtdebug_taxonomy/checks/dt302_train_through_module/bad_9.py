"""Trains a contrastive model by a method of its own, which the wrapper does not know."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.body(x)

    def pull(self, a, b):
        return self.distance(self.body(a), self.body(b))

    def distance(self, a, b):
        return (a - b).pow(2).mean()


class Trainer:
    def __init__(self, net, optimizer):
        self.net = DDP(Encoder())
        self.optimizer = optimizer

    def fit(self, loader):
        for a, b in loader:
            self.optimizer.zero_grad()
            loss = self.net.module.pull(a, b)  # dt: DT302
            (loss / 2).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self, loader):
        return [self.net.module.pull(a, b) for a, b in loader]
