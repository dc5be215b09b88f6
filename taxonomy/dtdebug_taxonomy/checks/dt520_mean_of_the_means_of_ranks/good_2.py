import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for x, y, mask in loader:
    loss = cross_entropy(model(x), y)
    loss.backward()
    with torch.no_grad():
        shown = (loss * mask).sum() / mask.sum()
