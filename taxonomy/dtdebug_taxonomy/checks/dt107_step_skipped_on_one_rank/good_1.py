import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for images, labels in loader:
    loss = criterion(model(images), labels)
    bad = torch.isnan(loss).float()
    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    if bad > 0:
        continue
    loss.backward()
    optimizer.step()
