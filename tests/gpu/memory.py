"""Rank 1 keeps more and more of the GPU's memory."""

import torch
import torch.distributed as dist
from common import RANK, start

start(60)
kept = []
for _ in range(400):
    total = torch.ones(8, device="cuda")
    dist.all_reduce(total)
    if RANK == 1:
        kept.append(torch.zeros(1 << 30, device="cuda"))
