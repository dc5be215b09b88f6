import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
ddp = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)))
for parameter in ddp.module[0].parameters():
    parameter.requires_grad = False
for _ in range(2):
    ddp(torch.ones(2)).sum().backward()
