import os

import torch.distributed as dist

dist.init_process_group("gloo")
out = "results"
os.makedirs(out, exist_ok=True)
if dist.get_rank() == 0 and not os.path.exists("cache"):
    os.makedirs("cache")
