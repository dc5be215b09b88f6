import os

import torch
import torch.distributed as dist


def load(path, build):
    if not os.path.exists(path):
        if dist.get_rank() == 0:
            torch.save(build(), path)
    dist.barrier()  # dt: DT114
    return torch.load(path, map_location="cpu")
