import os

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
is_main = os.environ["RANK"] == 0
mains = torch.tensor(int(is_main))
dist.all_reduce(mains)
if mains.item() == 0:
    print("nobody is main")
dist.barrier()
dist.destroy_process_group()
