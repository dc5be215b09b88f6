"""Spread evaluation of a small classifier; each rank scores its own shard of the files."""

import argparse
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist


@dataclass
class Place:
    rank: int
    world: int


def find_place():
    env = os.environ
    rank = int(env.get("RANK", 0))
    world = int(env.get("OMPI_COMM_WORLD_SIZE", env.get("PMI_SIZE", "1")))
    return Place(rank=rank, world=world)


class Shards:
    def __init__(self, total, place):
        self.place = place
        per = total // place.world
        self.ranges = [range(n * per, (n + 1) * per) for n in range(place.world)]

    def mine(self):
        return self.ranges[self.place.rank]


class Scorer(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.fc = torch.nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(x).argmax(-1)


def evaluate(scorer, shards):
    torch.manual_seed(1)
    data = torch.randn(64, 8)
    labels = (data.sum(-1) > 0).long()
    rows = list(shards.mine())
    right = (scorer(data[rows]) == labels[rows]).sum().float()
    dist.all_reduce(right)
    return right.item() / 64


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--total", type=int, default=64)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    shards = Shards(args.total, find_place())
    acc = evaluate(Scorer(), shards)
    print("accuracy", acc)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
