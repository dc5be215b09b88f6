import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for i, x in enumerate([]):
    ddp.require_backward_grad_sync = (i + 1) % 8 == 0
    ddp(x).sum().backward()  # dt: DT316
    if (i + 1) % 8 == 0:
        optimizer.step()
        optimizer.zero_grad()
