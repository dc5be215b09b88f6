import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def mean_of(tensor, world_size):
    copy = tensor.detach().clone()
    dist.all_reduce(copy)
    copy /= world_size
    return copy


def train(model, loader, optimizer, world_size):
    model = DistributedDataParallel(model)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        loss = mean_of(loss, world_size)
        optimizer.step()
        print(loss.item())
