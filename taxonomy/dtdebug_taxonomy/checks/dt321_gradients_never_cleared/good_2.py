import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    model(batch).mean().backward()
    optimizer.step()
    for p in model.parameters():
        p.grad = None
