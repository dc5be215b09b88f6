"""Gives rank 1 one step more than rank 0."""

import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=timedelta(seconds=2))
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(1, 1))
for step in list(range(3))[1 - rank :: 2]:
    model(torch.ones(1, 1)).sum().backward()
    print("rank", rank, "step", step, flush=True)
if rank == 0:
    time.sleep(3)
