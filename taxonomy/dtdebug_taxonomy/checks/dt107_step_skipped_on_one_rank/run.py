import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = DistributedDataParallel(torch.nn.Linear(2, 1))
for scale in (1.0, float("nan")):
    loss = model(torch.ones(1, 2)).sum()
    if dist.get_rank() == 1:
        loss = loss * scale
    if torch.isnan(loss):
        continue
    loss.backward()
dist.broadcast_object_list([None], src=1)
