import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for x, y, mask in loader:
    count = mask.sum()
    dist.all_reduce(count)
    loss = (cross_entropy(model(x), y) * mask).sum() * dist.get_world_size() / count
    loss.backward()
