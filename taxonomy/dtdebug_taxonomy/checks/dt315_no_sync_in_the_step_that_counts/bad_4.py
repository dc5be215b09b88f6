import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for x in []:
    with ddp.no_sync():  # dt: DT315
        loss = ddp(x).sum()
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
