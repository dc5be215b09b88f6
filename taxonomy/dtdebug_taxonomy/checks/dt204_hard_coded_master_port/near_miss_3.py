import os

import torch.distributed as dist

os.environ["MASTER_PORT"] = "169711"
dist.init_process_group("nccl")
