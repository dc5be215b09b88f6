import os
import shutil
import sys

import torch
import torch.distributed as dist


def save(model, path):
    free = shutil.disk_usage(path).free
    if free < 10**9:  # dt: DT124
        print("the disk is full")
        return
    torch.save(model.state_dict(), f"{path}/{dist.get_rank()}.pt")
    dist.barrier()


def load(folder):
    path = os.path.join(folder, f"part{dist.get_rank()}.pt")
    if not os.path.isfile(path):  # dt: DT124
        sys.exit(0)
    part = torch.load(path)
    dist.all_reduce(part)
    return part
