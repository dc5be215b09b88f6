import os

import torch
import torch.distributed as dist

rank = int(os.getenv("LOCAL_RANK", "0"))
torch.cuda.set_device(rank)
dist.init_process_group("nccl", rank=rank, world_size=int(os.getenv("WORLD_SIZE", "1")))  # dt: DT218
