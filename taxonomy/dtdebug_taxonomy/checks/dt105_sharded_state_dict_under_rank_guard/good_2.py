import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
if rank == 0:
    torch.save(model.module.state_dict(), "model.pt")
    torch.save(model.state_dict(), "wrapped.pt")
