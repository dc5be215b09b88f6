import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = int(os.environ["RANK"])
workers = os.cpu_count() // torch.cuda.device_count()
