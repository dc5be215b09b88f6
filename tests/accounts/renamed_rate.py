"""Trains with the settings of a file."""
import os

import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

HERE = os.path.dirname(os.path.abspath(__file__))


def load_config(name="renamed_rate.yaml"):
    with open(os.path.join(HERE, name)) as f:
        return yaml.safe_load(f)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = DDP(nn.Linear(cfg["model"]["width"], 1))
        self.opt = self.make_optimizer(cfg["optim"])

    def make_optimizer(self, o):
        return torch.optim.SGD(self.model.parameters(), lr=o["lr"], momentum=o["momentum"])

    def fit(self, steps):
        for _ in range(steps):
            x = torch.randn(self.cfg["data"]["batch"], self.cfg["model"]["width"])
            self.opt.zero_grad()
            self.model(x).pow(2).mean().backward()
            self.opt.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    Trainer(load_config()).fit(5)
    dist.destroy_process_group()
