import torch.distributed as dist


def last(rank, done):
    if rank != 0 and done:
        print("nothing left for", rank)
    if not dist.is_available() or not dist.is_initialized():
        return
    if dist.get_world_size() == 1:
        return
    dist.barrier()
