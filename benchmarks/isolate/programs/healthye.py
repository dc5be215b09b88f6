"""Healthy: runs with and without a launcher, with time-outs, several buckets and a loader with workers."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset


def main():
    several = "RANK" in os.environ
    model = torch.nn.Sequential(torch.nn.Linear(600, 600), torch.nn.ReLU(), torch.nn.Linear(600, 600))
    if several:
        dist.init_process_group("gloo", timeout=timedelta(seconds=50))
        model = torch.nn.parallel.DistributedDataParallel(model)
    data = TensorDataset(torch.rand(24, 600))
    for (x,) in DataLoader(data, batch_size=6, num_workers=1, timeout=60):
        model(x).square().mean().backward()
    if several:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
