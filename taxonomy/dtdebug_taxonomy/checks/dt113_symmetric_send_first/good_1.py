import torch.distributed as dist

rank = dist.get_rank()
if rank == 0:
    dist.send(x, dst=1)
    dist.recv(y, src=1)
else:
    dist.recv(y, src=0)
    dist.send(x, dst=0)
