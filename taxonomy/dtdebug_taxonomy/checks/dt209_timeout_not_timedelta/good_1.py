from datetime import timedelta

import torch.distributed as dist

dist.init_process_group("nccl", timeout=timedelta(minutes=30))
