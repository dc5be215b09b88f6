import os

import torch.distributed as dist

dist.init_process_group("gloo")
mine = f"results/{dist.get_rank()}"
if not os.path.exists(mine):
    os.makedirs(mine)
try:
    if not os.path.exists("shared"):
        os.makedirs("shared")
except FileExistsError:
    pass
