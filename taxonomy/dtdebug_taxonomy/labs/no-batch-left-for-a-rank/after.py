"""Trains for a planned number of steps on a small data set."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

STEPS, BATCH = 3, 32

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(100, 8))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=BATCH // dist.get_world_size(), sampler=sampler, drop_last=True)
batches = iter(loader)
for step in range(STEPS):
    (batch,) = next(batches)
    total = batch.sum()
    dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"finished {STEPS} steps", flush=True)
dist.destroy_process_group()
