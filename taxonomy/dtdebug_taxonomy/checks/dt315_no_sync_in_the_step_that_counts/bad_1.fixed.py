import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for i, x in enumerate([]):
    if not ((i + 1) % 4 == 0):  # dt: DT315
        with ddp.no_sync():
            ddp(x).sum().backward()
    else:
        ddp(x).sum().backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
