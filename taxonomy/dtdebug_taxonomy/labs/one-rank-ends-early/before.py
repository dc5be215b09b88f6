"""Trains until the loss is small enough."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
for step in range(6):
    loss = torch.tensor(1.0 - 0.2 * step if dist.get_rank() == 1 else 1.0)
    gradient = torch.ones(1000)
    dist.all_reduce(gradient)
    if loss < 0.5:
        break
print(f"finished {step + 1} steps", flush=True)
