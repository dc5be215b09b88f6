import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
seed = torch.tensor([rank + 17])
dist.broadcast(seed, src=0)
torch.manual_seed(seed.item())
dist.destroy_process_group()
