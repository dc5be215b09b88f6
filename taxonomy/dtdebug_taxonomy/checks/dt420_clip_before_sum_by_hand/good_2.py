import torch
from torch.nn.parallel import DistributedDataParallel


def step(model, loss, optimizer, limit):
    model = DistributedDataParallel(model)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    optimizer.step()
