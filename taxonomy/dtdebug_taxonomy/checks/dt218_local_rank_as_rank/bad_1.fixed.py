import os

import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
world_size = int(os.environ["WORLD_SIZE"])
dist.init_process_group("nccl", rank=int(os.environ["RANK"]), world_size=world_size)  # dt: DT218
