import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, whole, loader):
    head = nn.Linear(64, 8)
    whole.add_module("head", head)
    model = DDP(whole.to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD([{"params": model.parameters()}, {"params": head.parameters()}], lr=0.1)
    for images in loader:
        head(model(images)).sum().backward()
        optimizer.step()
