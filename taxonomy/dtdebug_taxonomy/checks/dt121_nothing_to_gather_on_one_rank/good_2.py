import torch
import torch.distributed as dist


def collect(outputs, device):
    hard = [o for o in outputs if o["loss"] > 1.0]
    some = torch.tensor(len(hard), device=device)
    dist.all_reduce(some, op=dist.ReduceOp.MAX)
    if not some.item():
        return []
    parts = [None] * dist.get_world_size()
    dist.all_gather_object(parts, hard)
    return parts
