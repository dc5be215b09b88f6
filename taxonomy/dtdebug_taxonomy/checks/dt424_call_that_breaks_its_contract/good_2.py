import torch
import torch.distributed as dist

rank = dist.get_rank()
world = dist.get_world_size()
outs = [torch.zeros(2) for _ in range(world)] if rank == 0 else None
dist.gather(torch.ones(2), outs, dst=0)
if rank > 0:
    dist.send(torch.ones(2), dst=rank - 1)
if rank < world - 1:
    dist.recv(torch.ones(2), src=rank + 1)
