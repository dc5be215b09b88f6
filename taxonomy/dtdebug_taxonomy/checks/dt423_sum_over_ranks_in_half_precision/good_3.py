import torch.distributed as dist


def largest(x):
    x = x.half()
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x
