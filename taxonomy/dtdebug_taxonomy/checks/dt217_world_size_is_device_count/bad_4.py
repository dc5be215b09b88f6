import os

import torch
from torch.distributed import init_process_group

gradient_accumulation_steps = 40
ddp = int(os.environ.get("RANK", -1)) != -1
if ddp:
    init_process_group(backend="nccl")
    gradient_accumulation_steps //= torch.cuda.device_count()  # dt: DT217
