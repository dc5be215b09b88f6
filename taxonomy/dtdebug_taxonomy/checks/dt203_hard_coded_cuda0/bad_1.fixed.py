import os
import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Linear(2, 2)
model.to(f"cuda:{os.environ['LOCAL_RANK']}")  # dt: DT203
