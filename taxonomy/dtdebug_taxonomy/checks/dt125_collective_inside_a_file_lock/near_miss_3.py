import torch.distributed as dist
from filelock import FileLock


def save(step):
    with FileLock("/data/index.lock"):
        write(step)

        def finish():
            dist.barrier()

        later(finish)


save(1)
dist.barrier()
