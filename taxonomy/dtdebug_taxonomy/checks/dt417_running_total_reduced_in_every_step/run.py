"""Two ranks that add 1 in each of three rounds, summed in each round and once."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
total = torch.zeros(1)
for _ in range(3):
    total += 1
    dist.all_reduce(total)
once = torch.zeros(1)
for _ in range(3):
    once += 1
dist.all_reduce(once)
print("in each round", total.item(), "once", once.item(), flush=True)
dist.destroy_process_group()
