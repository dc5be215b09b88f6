import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = DistributedDataParallel(torch.nn.Linear(2, 1))
for step in range(5):
    model(torch.ones(1, 2)).sum().backward()
    if dist.get_rank() == 0 and step == 2:
        print("rank 0 stops", flush=True)
        break
dist.all_reduce(torch.ones(3))
