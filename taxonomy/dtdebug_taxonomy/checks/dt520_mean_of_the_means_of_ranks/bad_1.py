import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for x, y, mask in loader:
    losses = cross_entropy(model(x), y)
    loss = (losses * mask).sum() / mask.sum()  # dt: DT520
    loss.backward()
