import torch.distributed as dist


def average(x, rank=-1, world_size=1):
    if rank != -1 and world_size > 1:
        dist.all_reduce(x)
    return x


def close(args):
    if args.rank is not None and dist.is_initialized():
        dist.barrier()


def tell(rank, everywhere):
    if rank == 0 or everywhere:
        dist.barrier()
