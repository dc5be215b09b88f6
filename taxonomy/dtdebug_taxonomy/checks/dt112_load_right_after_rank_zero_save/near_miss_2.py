import os

import torch
import torch.distributed as dist


def table(path, compute):
    rank = dist.get_rank()
    if not os.path.exists(path):
        found = compute()
        if rank == 0:
            torch.save(found, path)
    else:
        found = torch.load(path)
    return found
