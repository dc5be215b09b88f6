from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=timedelta(seconds=5))
mine = ["a", "b", "c"][dist.get_rank() :: dist.get_world_size()]
for file in mine:
    dist.all_reduce(torch.ones(1))
    print("rank", dist.get_rank(), "summed", file)
dist.barrier()
