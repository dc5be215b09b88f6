import torch
import torch.distributed as dist

dist.init_process_group(backend="nccl")
cpu = dist.new_group(backend="gloo")
dist.all_reduce(torch.ones(1), group=cpu)
with torch.device("cuda"):
    x = torch.zeros(2)
dist.all_reduce(x)
