import copy

import torch.distributed as dist


def train(model, loader, start):
    rank = dist.get_rank()
    ema = copy.deepcopy(model) if rank == 0 else None
    ema.updates = start  # dt: DT116
    for batch in loader:
        model(batch)
        if rank == 0:
            ema.update(model)
