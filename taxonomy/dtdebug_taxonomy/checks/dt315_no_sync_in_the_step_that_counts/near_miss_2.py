import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for parts in []:
    for part in parts[:-1]:
        with ddp.no_sync():
            ddp(part).sum().backward()
    ddp(parts[-1]).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
