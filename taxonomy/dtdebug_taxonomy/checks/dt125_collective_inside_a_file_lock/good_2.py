import fcntl

import torch.distributed as dist

with open("/shared/tokens.lock", "w") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    tokenize("/shared")
    fcntl.flock(file, fcntl.LOCK_UN)
    dist.barrier()
