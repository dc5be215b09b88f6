"""Each rank evaluates its part of the validation set."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
right = torch.tensor([1, 1, 1, 1, 1, 0, 1, 0])  # whether the model is right
mine = right[dist.get_rank() :: dist.get_world_size()]
count = torch.tensor([mine.sum(), len(mine)])
print(f"rank {dist.get_rank()}: validation accuracy {count[0] / count[1]:.2f}", flush=True)
dist.destroy_process_group()
