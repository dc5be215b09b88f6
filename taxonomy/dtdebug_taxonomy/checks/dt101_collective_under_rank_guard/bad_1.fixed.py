import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
loss = torch.ones(1)
dist.all_reduce(loss)  # dt: DT101
if rank == 0:
    print(loss)
