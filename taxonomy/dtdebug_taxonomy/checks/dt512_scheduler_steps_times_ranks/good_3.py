import torch
import torch.distributed as dist


def schedule(optimizer, steps):
    dist.barrier()
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
