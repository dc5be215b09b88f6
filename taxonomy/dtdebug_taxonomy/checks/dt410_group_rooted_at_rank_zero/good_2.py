import torch.distributed as dist


def share(x, group=None):
    dist.broadcast(x, src=0, group=group)
    dist.broadcast(x, src=0)
