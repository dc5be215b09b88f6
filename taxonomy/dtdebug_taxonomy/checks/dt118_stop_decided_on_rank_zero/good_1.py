import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for epoch in range(100):
    model(batch).mean().backward()
    stop = torch.zeros(1)
    if dist.get_rank() == 0:
        stop = torch.tensor([float(patience_is_over())])
    dist.broadcast(stop, 0)
    if stop.item():
        break
