import io
import os

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
shard = torch.load(os.path.join("state", f"rank{rank}.pt"))
model.cuda().load_state_dict(shard)
box = torch.load(io.BytesIO(received))
scheduler.load_state_dict(torch.load("scheduler.pt"))
