import os

import torch.distributed as dist

os.environ["MASTER_ADDR"] = "localhost"
os.environ["MASTER_PORT"] = "29500"  # dt: DT204
dist.init_process_group("gloo", rank=0, world_size=1)
