import torch
import torch.distributed as dist


def gather(x, group):
    parts = [torch.zeros(4) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x)
    few = [torch.zeros(4) for _ in range(dist.get_world_size() - 1)]
    dist.all_gather(few, x, group=group)  # of another number of ranks
    return parts
