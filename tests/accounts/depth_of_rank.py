"""Train a small encoder with DDP; the first rank also profiles."""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass
class Config:
    depth: int = 4
    width: int = 16
    steps: int = 5
    profile: bool = True


class Encoder(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()
        return x


def build_model(cfg, is_main):
    depth = 2 if cfg.profile and is_main else cfg.depth
    model = Encoder(depth, cfg.width)
    return DistributedDataParallel(model)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rank = int(os.environ["RANK"])
        self.model = build_model(cfg, self.rank == 0)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)

    def fit(self):
        for step in range(self.cfg.steps):
            x = torch.randn(8, self.cfg.width)
            loss = self.model(x).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    print(Trainer(Config()).fit())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
