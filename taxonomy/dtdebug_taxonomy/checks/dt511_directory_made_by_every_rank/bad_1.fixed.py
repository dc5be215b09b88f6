import os

import torch.distributed as dist

dist.init_process_group("gloo")
out = "results"
if not os.path.exists(out):
    os.makedirs(out, exist_ok=True)  # dt: DT511
