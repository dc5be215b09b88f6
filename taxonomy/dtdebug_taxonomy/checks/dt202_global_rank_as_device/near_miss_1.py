import os

import torch
import torch.distributed as dist

rank = dist.get_rank()
torch.manual_seed(rank)
tensor = torch.tensor([rank], device="cuda")
print(f"cuda:{rank} says hello", torch.full((1,), rank).to(torch.float32))
group_rank = dist.get_rank(dist.new_group([0, 1]))
gpus_per_node = torch.cuda.device_count()
local = int(os.environ["RANK"]) % gpus_per_node
torch.cuda.set_device(local)
