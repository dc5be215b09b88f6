"""Two ranks of one host on one GPU, which NCCL refuses."""

import torch
import torch.distributed as dist
from common import start

start(hosts=False)
t = torch.ones(4, device="cuda")
dist.all_reduce(t)
torch.cuda.synchronize()
