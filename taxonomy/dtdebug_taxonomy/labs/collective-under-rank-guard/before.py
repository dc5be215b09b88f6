"""After the training rank 0 says how good the model is, and all learn whether to go on."""

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
weight = torch.ones(1000)
for step in range(5):
    gradient = torch.full((1000,), 0.1)
    dist.all_reduce(gradient)
    weight -= 0.1 * gradient

score, again = torch.ones(1), torch.zeros(1)
if rank == 0:
    dist.all_reduce(score)
    print(f"score {score.item() / dist.get_world_size():g}", flush=True)
dist.broadcast(again, src=0)
dist.destroy_process_group()
