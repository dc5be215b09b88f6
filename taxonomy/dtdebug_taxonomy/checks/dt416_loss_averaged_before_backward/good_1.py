import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer):
    model = DistributedDataParallel(model)
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        dist.all_reduce(loss)
        loss = loss / dist.get_world_size()
        optimizer.step()
        print(loss.item())
