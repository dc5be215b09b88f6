import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
ddp = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
loss = ddp(torch.full((1, 1), dist.get_rank() + 1.0)).sum()
with ddp.no_sync():
    loss.backward()
if ddp.module.weight.grad.item() == 1.5:
    print("averaged in spite of no_sync")
dist.barrier()
dist.destroy_process_group()
