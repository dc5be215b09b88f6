import torch
import torch.distributed as dist


def gather(x):
    parts = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)  # dt: DT424
    return parts
