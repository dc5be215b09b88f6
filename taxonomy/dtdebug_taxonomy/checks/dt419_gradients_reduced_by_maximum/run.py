import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.ones(1, requires_grad=True)
(weight * (-3.0 if rank else 1.0)).backward()
largest, mean = weight.grad.clone(), weight.grad.clone()
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
dist.all_reduce(mean)
mean /= dist.get_world_size()
if rank == 0:
    print(f"maximum {largest.item()} mean {mean.item()}", flush=True)
dist.destroy_process_group()
