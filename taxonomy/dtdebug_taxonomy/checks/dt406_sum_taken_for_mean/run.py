"""Reduces a loss of 1.0 over two ranks."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
loss = torch.ones(1)
dist.all_reduce(loss)
if dist.get_rank() == 0:
    print("reduced", loss.item(), "mean", (loss / dist.get_world_size()).item(), flush=True)
dist.destroy_process_group()
