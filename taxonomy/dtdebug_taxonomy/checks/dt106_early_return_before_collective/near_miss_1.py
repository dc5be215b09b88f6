import torch.distributed as dist


def exchange(rank, leaders, x):
    if rank >= 4:
        return x
    dist.all_reduce(x, group=leaders)
    return x


def check(rank):
    if rank not in (0, 1):
        raise SystemExit("two ranks only")
    dist.barrier()
