import torch
from torch.nn.parallel import DistributedDataParallel as DDP

net = torch.nn.Linear(2, 2)
ddp = DDP(net)
regulariser = ddp.module.penalty()
loss = ddp(torch.ones(2)).sum() + regulariser
loss.backward()
target = ddp.module(torch.ones(2)).detach()
