import torch
from torch.nn.parallel import DistributedDataParallel as DDP

from mine import checkpoint


def save(model, options):
    checkpoint(model, "m.pt")
    torch.utils.checkpoint.checkpoint(model, 1, **options)
    return DDP(model, find_unused_parameters=True)
