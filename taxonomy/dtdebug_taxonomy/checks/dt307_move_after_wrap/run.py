import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
ddp = DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
ddp.double()
ddp(torch.full((1, 1), dist.get_rank() + 1.0, dtype=torch.float64)).sum().backward()
gradients = [torch.zeros(1, 1, dtype=torch.float64) for _ in range(2)]
dist.all_gather(gradients, ddp.module.weight.grad)
if not torch.equal(*gradients):
    print("gradients differ")
dist.barrier()
dist.destroy_process_group()
