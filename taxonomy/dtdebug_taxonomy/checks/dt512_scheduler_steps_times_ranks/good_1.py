import torch
import torch.distributed as dist


def schedule(optimizer, steps):
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps // dist.get_world_size())
