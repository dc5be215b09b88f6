import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
replicas = int(os.environ.get("NUM_NODES", "1"))
data = TensorDataset(torch.arange(32.0).unsqueeze(1))
sampler = DistributedSampler(data, num_replicas=replicas, rank=rank)
loader = DataLoader(data, batch_size=4, sampler=sampler)
for (x,) in loader:
    print(rank, x.flatten().tolist())
dist.destroy_process_group()
