"""The ranks of a job meet and add their numbers."""

import os
from datetime import timedelta

import torch
import torch.distributed as dist

dist.init_process_group(
    "gloo",
    rank=int(os.environ["RANK"]),
    world_size=4,
    timeout=timedelta(seconds=10),
)
total = torch.tensor([dist.get_rank() + 1.0])
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(f"the sum is {total.item():g}", flush=True)
dist.destroy_process_group()
