import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank = dist.get_rank()
peer = 1 - rank
mine, theirs = torch.ones(4).cuda(), torch.empty(4).cuda()
dist.send(mine, dst=peer)  # dt: DT113
dist.recv(theirs, src=peer)
