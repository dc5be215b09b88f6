import torch
import torch.distributed as dist


def sync_all():
    torch.cuda.synchronize()
    dist.barrier()


def measured(tensor):
    if dist.get_rank() == 0:
        dist.isend(tensor, 1)
    if dist.get_rank() == 1:
        dist.irecv(tensor, src=0)
    sync_all()


measured(torch.ones(4))
