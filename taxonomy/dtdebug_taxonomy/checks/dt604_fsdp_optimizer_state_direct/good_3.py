import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
optimizer = torch.optim.AdamW(model.parameters())
torch.save(optimizer.state_dict(), "optimizer.pt")
