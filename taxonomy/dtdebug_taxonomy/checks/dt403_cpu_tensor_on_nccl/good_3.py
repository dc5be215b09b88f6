import torch
import torch.distributed as dist

dist.init_process_group("cpu:gloo,cuda:nccl")
dist.all_reduce(torch.tensor(1))


def scale(loss):
    total = torch.tensor(loss)
    dist.all_reduce(total)
    return total
