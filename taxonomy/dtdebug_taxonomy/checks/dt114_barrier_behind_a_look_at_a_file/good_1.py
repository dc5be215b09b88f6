import os

import torch
import torch.distributed as dist


def load(path, build):
    if dist.get_rank() == 0 and not os.path.exists(path):
        torch.save(build(), path)
    dist.barrier()
    return torch.load(path, map_location="cpu")
