import torch
import torch.distributed as dist

dist.init_process_group("gloo")
loss = torch.ones(1)
dist.all_reduce(loss)
if dist.get_rank() == 0:
    print(loss)
