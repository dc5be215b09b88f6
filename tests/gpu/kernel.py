"""A kernel of rank 1 never ends; the all_reduce behind it is called by all."""

import torch
import torch.distributed as dist
from common import RANK, start

start(600)
t = torch.ones(1 << 20, device="cuda")
for step in range(20):
    if step == 6 and RANK == 1:
        torch.cuda._sleep(1 << 42)
    dist.all_reduce(t)
    value = t.sum().item()
