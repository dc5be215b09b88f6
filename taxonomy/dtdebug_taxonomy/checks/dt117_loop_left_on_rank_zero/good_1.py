import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for epoch in range(100):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
    stop = torch.zeros(1)
    if dist.get_rank() == 0 and stopper(validate(model.module)):
        stop += 1
    dist.broadcast(stop, 0)
    if stop.item():
        break
