import copy

import torch.distributed as dist


def train(model, loader):
    rank = dist.get_rank()
    ema = copy.deepcopy(model) if rank == 0 else None
    for batch in loader:
        model(batch)
        if ema:
            ema.update(model)
