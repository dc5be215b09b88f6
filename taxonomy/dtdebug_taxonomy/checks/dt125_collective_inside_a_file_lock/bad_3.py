import torch.distributed as dist
from filelock import FileLock

lock = FileLock("/data/download.lock")
lock.acquire()
try:
    download("/data")
    dist.barrier()  # dt: DT125
finally:
    lock.release()
