import torch.distributed as dist


def reduce_mean(loss, world_size):
    dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    loss /= world_size
    print(loss.item())
