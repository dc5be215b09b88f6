"""Shows whether gathered features carry a gradient, without and with the own slice put back."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(2, requires_grad=True) * 2
parts = [torch.zeros(2) for _ in range(dist.get_world_size())]
dist.all_gather(parts, x.detach())
plain = torch.cat(parts)
parts[dist.get_rank()] = x
if dist.get_rank() == 0:
    print(f"gathered requires_grad {plain.requires_grad}, with own slice {torch.cat(parts).requires_grad}", flush=True)
dist.destroy_process_group()
