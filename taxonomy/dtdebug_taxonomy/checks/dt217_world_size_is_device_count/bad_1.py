import os

import torch
import torch.distributed as dist

dist.init_process_group(
    "nccl",
    rank=int(os.environ["RANK"]),
    world_size=torch.cuda.device_count(),  # dt: DT217
)
