import os

import torch.distributed as dist

rank = int(os.environ.get("RANK") or 0)
dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]))
