import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(2, 2))
keys = list(ddp.state_dict())
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
torch.save(optimizer.state_dict(), "optimizer.pt")
