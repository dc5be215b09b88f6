"""An epoch with two ranks; each sample takes some milliseconds."""

import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(160, 8))
loader = DataLoader(data, batch_size=8)
begun, seen = time.monotonic(), 0
for (batch,) in loader:
    time.sleep(0.01 * len(batch))  # forward and backward
    dist.all_reduce(batch.mean(0))
    seen += len(batch)
print(f"rank {dist.get_rank()} trained on {seen} of {len(data)} samples in {time.monotonic() - begun:.1f} s", flush=True)
dist.destroy_process_group()
