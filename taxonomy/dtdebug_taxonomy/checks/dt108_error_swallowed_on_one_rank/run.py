import datetime

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=2))
model = DistributedDataParallel(torch.nn.Linear(2, 1))
try:
    loss = model(torch.ones(1, 2)).sum()
    if dist.get_rank() == 1:
        raise RuntimeError("CUDA out of memory")
    loss.backward()
except RuntimeError as error:
    if "out of memory" not in str(error):
        raise
    print("batch skipped")
dist.all_reduce(torch.ones(3))
