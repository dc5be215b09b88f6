"""Rank 1 leaves before the seventh all_reduce; the group waits for as many seconds as are given."""

import sys
import time

import torch
import torch.distributed as dist
from common import RANK, start

start(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
t = torch.ones(4, device="cuda")
for step in range(10):
    if step == 6 and RANK == 1:
        time.sleep(500)
    dist.all_reduce(t)
    torch.cuda.synchronize()
