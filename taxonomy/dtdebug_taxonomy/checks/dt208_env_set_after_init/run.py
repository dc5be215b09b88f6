import os

import torch.distributed as dist

for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
    os.environ.pop(name, None)
dist.init_process_group("gloo")
os.environ["MASTER_ADDR"] = "localhost"
