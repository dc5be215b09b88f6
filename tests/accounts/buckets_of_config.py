"""Gathers flat parameter buckets after a sharded update."""
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import yaml
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))


@dataclass
class BucketConfig:
    shards: int
    elements: int = 64
    lr: float = 0.1


def read_config(file):
    with open(file) as stream:
        raw = yaml.safe_load(stream)
    return BucketConfig(**raw["buckets"])


class ShardedSGD:
    def __init__(self, model, config):
        self.params = list(model.parameters())
        self.config = config
        flat = torch.cat([p.detach().flatten() for p in self.params])
        pad = -len(flat) % config.elements
        self.flat = nn.functional.pad(flat, (0, pad))
        self.part = self.flat.numel() // config.shards

    def own(self, rank):
        return self.flat[rank * self.part : (rank + 1) * self.part]

    def step(self):
        mine = self.own(dist.get_rank()).clone()
        mine -= self.config.lr * mine
        whole = torch.empty_like(self.flat)
        dist.all_gather_into_tensor(whole, mine)
        self.flat.copy_(whole)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(12, 20), nn.ReLU(), nn.Linear(20, 4))
    optimizer = ShardedSGD(model, read_config(os.path.join(HERE, "buckets_of_config.yaml")))
    for _ in range(2):
        optimizer.step()
    dist.destroy_process_group()


main()
