import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = DistributedDataParallel(torch.nn.Linear(2, 1))
tokens = 0
for length in (3, 1, 3) if dist.get_rank() else (1, 1, 1):
    tokens += length
    if tokens < 3:
        with model.no_sync():
            model(torch.ones(length, 2)).sum().backward()
    else:
        model(torch.ones(length, 2)).sum().backward()
        tokens = 0
dist.broadcast_object_list([None], src=1)
