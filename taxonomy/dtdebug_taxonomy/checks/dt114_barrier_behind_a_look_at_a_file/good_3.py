import os

import torch.distributed as dist


def resume(path, restore):
    if os.path.exists(path):
        restore(path)
        dist.barrier()
