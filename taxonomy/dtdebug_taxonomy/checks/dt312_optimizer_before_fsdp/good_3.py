import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def build(model, args):
    if args.cpu:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    else:
        model = FSDP(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return model, optimizer


def two(model, critic):
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    return FSDP(model), optimizer
