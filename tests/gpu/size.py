"""The ranks give tensors of other sizes to one all_reduce."""

import torch
import torch.distributed as dist
from common import RANK, start

start(25)
t = torch.ones(1 << 20 if RANK == 0 else 1 << 10, device="cuda")
dist.all_reduce(t)
torch.cuda.synchronize()
print("done", RANK)
