import torch
import torch.distributed as dist


def exchange(model):
    for p in model.parameters():
        small = p.grad.to(torch.bfloat16)
        dist.all_reduce(small)
        p.grad.copy_(small)
