import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for x in []:
    with ddp.no_sync():
        ddp(x).sum().backward()
    for p in ddp.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
    optimizer.zero_grad()
