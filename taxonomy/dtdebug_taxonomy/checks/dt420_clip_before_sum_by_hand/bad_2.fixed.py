import torch.distributed as dist
from torch.nn.utils import clip_grad_norm_


def average_gradients(model):
    size = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= size


def train(model, loader, optimizer, criterion, limit):
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        average_gradients(model)
        norm = clip_grad_norm_(model.parameters(), limit)  # dt: DT420
        optimizer.step()
        print(norm)
