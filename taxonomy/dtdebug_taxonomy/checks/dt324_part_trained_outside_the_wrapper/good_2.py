import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def train(rank, loader):
    backbone = nn.Linear(64, 64).to(rank)
    head = nn.Linear(64, 8).to(rank)
    backbone, head = DDP(backbone, device_ids=[rank]), DDP(head, device_ids=[rank])
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.1)
    for images in loader:
        head(backbone(images)).sum().backward()
        optimizer.step()
