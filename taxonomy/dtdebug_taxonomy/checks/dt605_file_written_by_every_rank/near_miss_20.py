import torch
import torch.distributed as dist


def dump(world_size, rank):
    if rank == 0:
        print("starts")
    numbers = open("all.txt", "w") if world_size == 1 else None
    return numbers
