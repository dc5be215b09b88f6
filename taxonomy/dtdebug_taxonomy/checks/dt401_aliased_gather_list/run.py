"""Gathers each rank's number into one tensor named twice, and into two tensors."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.tensor([dist.get_rank()])
aliased = [torch.zeros_like(x)] * dist.get_world_size()
dist.all_gather(aliased, x)
separate = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
dist.all_gather(separate, x)
if dist.get_rank() == 0:
    print("aliased", [int(t) for t in aliased], "separate", [int(t) for t in separate], flush=True)
dist.destroy_process_group()
