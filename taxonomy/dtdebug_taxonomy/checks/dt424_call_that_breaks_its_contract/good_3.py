import torch
import torch.distributed as dist

dist.init_process_group("gloo")
parts = [torch.zeros(4) for _ in range(8)]  # right for eight ranks
dist.all_gather(parts, torch.ones(4))
dist.broadcast(torch.ones(4), src=3)
