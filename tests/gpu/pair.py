"""Rank 1 receives twice what rank 0 sends once."""

import torch
import torch.distributed as dist
from common import RANK, start

start(600)
t = torch.ones(1 << 20, device="cuda")
dist.all_reduce(t)
if RANK == 0:
    dist.send(t, 1)
else:
    dist.recv(t, 0)
    dist.recv(t, 0)
torch.cuda.synchronize()
dist.barrier()
