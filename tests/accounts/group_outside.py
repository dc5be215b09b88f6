import torch
import torch.distributed as dist

dist.init_process_group("gloo")
members = [0, 1, 2, 3]
team = dist.new_group(members)
x = torch.ones(2)
dist.all_reduce(x, group=team)
