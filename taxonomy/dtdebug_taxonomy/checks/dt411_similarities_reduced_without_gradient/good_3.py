import torch
import torch.distributed as dist


def log_loss(a, b):
    with torch.no_grad():
        c = a @ b
        dist.all_reduce(c)
    return c
