import os

import torch
import torch.distributed as dist


def load(path, build):
    if not os.path.exists(path):
        if dist.get_rank() == 0:
            print("is not there")
        dist.barrier()
        raise FileNotFoundError(path)
    return torch.load(path, map_location="cpu")
