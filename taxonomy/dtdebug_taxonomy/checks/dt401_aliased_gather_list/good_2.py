import torch
import torch.distributed as dist


def gather_results(rows):
    out = [None] * dist.get_world_size()
    dist.all_gather_object(out, rows)
    return [row for part in out for row in part]


def gather_flat(x):
    flat = torch.empty(dist.get_world_size() * x.numel(), device=x.device)
    dist.all_gather_into_tensor(flat, x)
    return flat
