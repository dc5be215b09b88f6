import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, local_rank):
    model.requires_grad_(False)
    model.head = torch.nn.Linear(4, 2)
    for parameter in model.adapters.parameters():
        parameter.requires_grad = True
    return DDP(model, device_ids=[local_rank])
