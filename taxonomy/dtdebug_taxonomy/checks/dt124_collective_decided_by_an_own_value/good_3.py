import shutil

import torch
import torch.distributed as dist


def save(model, path):
    free = torch.tensor([float(shutil.disk_usage(path).free)])
    dist.all_reduce(free, op=dist.ReduceOp.MIN)
    if free.item() < 10**9:
        return
    torch.save(model.state_dict(), f"{path}/{dist.get_rank()}.pt")
    dist.barrier()
