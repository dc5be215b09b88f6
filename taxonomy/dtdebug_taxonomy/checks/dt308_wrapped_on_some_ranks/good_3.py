import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def prepare(model, rank, actors):
    if rank < 4:
        return DDP(model, process_group=actors)
    return model


def wrap(model):
    if not dist.is_initialized():
        return model
    return DDP(model)
