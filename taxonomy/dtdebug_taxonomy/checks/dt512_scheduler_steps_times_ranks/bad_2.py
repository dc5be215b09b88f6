import torch
import torch.distributed as dist


def schedule(optimizer, steps):
    total = steps * dist.get_world_size()
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)  # dt: DT512
