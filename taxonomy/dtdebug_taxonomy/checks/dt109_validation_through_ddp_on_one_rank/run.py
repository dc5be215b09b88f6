import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
model = DistributedDataParallel(net).eval()
if dist.get_rank() == 0:
    with torch.no_grad():
        model(torch.ones(4, 2))
dist.barrier()
dist.all_reduce(torch.ones(1))
