import atexit

import torch.distributed as dist

from mine import cleanup

dist.init_process_group("nccl")
atexit.register(cleanup)
print("trains")
