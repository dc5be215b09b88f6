import torch
import torch.distributed as dist

dist.init_process_group("nccl")
n = torch.tensor([4], device="cuda")
dist.broadcast(n, 0)
m = torch.zeros(3)
m = m.cuda()
dist.all_reduce(m)
dist.all_reduce(torch.ones(1).to(n.device))
