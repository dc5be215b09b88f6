import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = DistributedDataParallel(torch.nn.Linear(1, 1))
data = [torch.full((1,), float(n)) for n in range(6)]
for x in DataLoader(data, sampler=DistributedSampler(data, shuffle=False)):
    loss = (model(x) * 0 + x).mean()
    if loss.item() == 2:
        print("one rank stops", flush=True)
        break
    loss.backward()
dist.all_reduce(torch.ones(3))
