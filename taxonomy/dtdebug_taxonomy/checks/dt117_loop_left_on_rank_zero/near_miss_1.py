"""Rank 0 tells the others before it leaves, and these leave too."""

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for epoch in range(100):
    for batch in loader:
        model(batch).backward()
    answer = [None]
    if dist.get_rank() == 0:
        answer[0] = stopper(model)
        dist.broadcast_object_list(answer, 0)
        if answer[0]:
            break
    else:
        dist.broadcast_object_list(answer, 0)
        if answer[0]:
            break
