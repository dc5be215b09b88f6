import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for batch in loader:
    failed = torch.zeros(1)
    try:
        loss = model.module(batch).sum()
        loss.backward()
    except RuntimeError:
        failed = torch.ones(1)
    dist.all_reduce(failed)
    if failed:
        continue
    average_gradients(model)
