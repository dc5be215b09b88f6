import torch
import torch.distributed as dist


def collect(x, index):
    picked = x[index]
    top = picked.topk(5).values
    parts = [torch.zeros_like(top) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, top)
    return parts
