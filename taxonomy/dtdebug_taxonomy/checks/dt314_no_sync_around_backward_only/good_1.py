import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
with ddp.no_sync():
    loss = ddp(torch.ones(2)).sum()
    loss.backward()
ddp(torch.ones(2)).sum().backward()
