"""Two epochs with shuffled data."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo")
data = torch.arange(24)
sampler = DistributedSampler(data, shuffle=True)
loader = DataLoader(data, batch_size=4, sampler=sampler)
orders = []
for epoch in range(2):
    orders.append([batch.tolist() for batch in loader])
    print(f"rank {dist.get_rank()}: epoch {epoch} begins with samples {orders[-1][0]}", flush=True)
dist.barrier()
if dist.get_rank() == 0:
    print(f"the order {'stays' if orders[0] == orders[1] else 'changes'}", flush=True)
dist.destroy_process_group()
