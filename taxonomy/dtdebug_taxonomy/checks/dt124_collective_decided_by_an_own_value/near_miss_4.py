"""The phases are the same on all ranks, whatever they are paired with."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def train(dataset, rank):
    loader = DataLoader(dataset, sampler=DistributedSampler(dataset))
    phases = [("generator", 1), ("critic", 4)]
    for number, images in enumerate(loader):
        for (name, interval), part in zip(phases, images.split(2)):
            if number % interval != 0:
                continue
            total = part.sum()
            dist.all_reduce(total)
            if rank == 0:
                print(name, total)
