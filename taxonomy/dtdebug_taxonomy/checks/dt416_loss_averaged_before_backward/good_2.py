import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer, world_size):
    model = DistributedDataParallel(model)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        shown = loss.detach().clone()
        dist.all_reduce(shown)
        shown /= world_size
        loss.backward()
        optimizer.step()
        print(shown.item())
