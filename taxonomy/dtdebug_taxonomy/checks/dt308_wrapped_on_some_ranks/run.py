import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo", timeout=timedelta(seconds=3))
model = torch.nn.Linear(2, 2)
if dist.get_rank() == 0:
    model = DistributedDataParallel(model)
else:
    time.sleep(6)
