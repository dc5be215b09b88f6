import torch.distributed as dist


def download(rank, path):
    if rank != 0:
        dist.barrier()
    print("reads", path)
    if rank == 0:
        dist.barrier()
