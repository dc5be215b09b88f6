import torch
import torch.distributed as dist
from torch.distributed import P2POp


def connect(rank, group):
    if rank % 2 == 0:
        there = P2POp(op=dist.isend, tensor=torch.empty(1).cuda(), peer=rank + 1, group=group)
        back = P2POp(op=dist.irecv, tensor=torch.empty(1).cuda(), peer=rank + 1, group=group)
        dist.batch_isend_irecv([there, back])
    else:
        there = P2POp(op=dist.irecv, tensor=torch.empty(1).cuda(), peer=rank - 1, group=group)
        back = P2POp(op=dist.isend, tensor=torch.empty(1).cuda(), peer=rank - 1, group=group)
        dist.batch_isend_irecv([there, back])
