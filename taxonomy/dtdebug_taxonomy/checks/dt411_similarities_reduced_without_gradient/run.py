import torch
import torch.distributed as dist
import torch.distributed.nn.functional as functional

dist.init_process_group("gloo")
found = []
for reduced in (False, True):
    x = torch.ones(1, 1, requires_grad=True)
    c = x @ torch.ones(1, 1)
    if reduced:
        total = functional.all_reduce(c)
    else:
        total = c * 1
        dist.all_reduce(total)
    total.sum().backward()
    found.append(float(x.grad))
if dist.get_rank() == 0:
    print("plain", found[0], "differentiable", found[1], flush=True)
dist.destroy_process_group()
