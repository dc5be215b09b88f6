import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer):
    model = DistributedDataParallel(model)
    for x, mask in loader:
        count = mask.sum()
        dist.all_reduce(count)
        count = count / dist.get_world_size()
        loss = (model(x) * mask).sum() / count
        loss.backward()
        optimizer.step()
