import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
optimizer = torch.optim.AdamW(model.parameters())
for batch in loader:
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
