import torch.distributed as dist


def prepare(rank, path):
    if rank != 0:
        dist.barrier()
        return read(path)
    data = download(path)
    dist.barrier()
    return data


def shut_down(args):
    if not args.distributed or args.rank == -1:
        return
    dist.barrier()
