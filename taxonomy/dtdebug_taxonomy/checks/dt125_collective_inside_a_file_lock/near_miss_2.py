import fcntl

import torch.distributed as dist

with open("/data/index", "r") as file:
    fcntl.flock(file, fcntl.LOCK_SH)
    dist.barrier()
    fcntl.flock(file, fcntl.LOCK_UN)
