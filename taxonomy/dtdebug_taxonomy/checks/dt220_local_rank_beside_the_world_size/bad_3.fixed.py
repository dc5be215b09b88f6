import os

import torch.distributed as dist

dist.init_process_group("nccl")
global_rank = int(os.environ.get("RANK", 0))  # dt: DT220
world_size = dist.get_world_size()
