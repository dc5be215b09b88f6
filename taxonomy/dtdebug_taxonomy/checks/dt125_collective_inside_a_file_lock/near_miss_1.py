import torch.distributed as dist
from filelock import FileLock

rank = dist.get_rank()
path = f"/data/part-{rank}.lock"
with FileLock(path):
    dist.barrier()
