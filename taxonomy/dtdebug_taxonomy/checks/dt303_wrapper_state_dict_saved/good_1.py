import torch
from torch.nn.parallel import DistributedDataParallel as DDP

net = torch.nn.Linear(2, 2)
ddp = DDP(net)
torch.save(ddp.module.state_dict(), "a.pt")
torch.save(net.state_dict(), "b.pt")
