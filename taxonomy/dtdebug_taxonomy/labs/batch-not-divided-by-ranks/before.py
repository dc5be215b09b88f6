"""The global batch is divided among the ranks."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
world = dist.get_world_size()
global_batch = 64
if global_batch % world:
    raise ValueError(f"global batch size ({global_batch}) must be divisible by the number of processes ({world})")
batch = torch.randn(global_batch // world, 8)
dist.barrier()
if dist.get_rank() == 0:
    print(f"each rank takes {len(batch)} samples", flush=True)
dist.destroy_process_group()
