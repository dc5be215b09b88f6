import torch
import torch.distributed as dist


def agree(choice, group):
    first = dist.get_global_rank(group, 0)
    rank = dist.get_rank()
    value = torch.tensor(choice if rank == first else 0)
    dist.broadcast(value, src=first)
    return value.item()
