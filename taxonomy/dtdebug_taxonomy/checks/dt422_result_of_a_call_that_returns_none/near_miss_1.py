import torch.distributed as dist
import torch.distributed.nn.functional as connected


def reduce_later(tensor, later):
    work = dist.all_reduce(tensor, async_op=later)
    if work is not None:
        work.wait()


def with_gradient(features):
    features = connected.all_reduce(features)
    return features / dist.get_world_size()


def handed_on(tensor):
    return dist.broadcast(tensor, src=0)


def perhaps(tensor, many):
    total = tensor
    if many:
        total = dist.all_reduce(tensor)
    return total


def options(tensor, **how):
    handle = dist.all_reduce(tensor, **how)
    handle.wait()
