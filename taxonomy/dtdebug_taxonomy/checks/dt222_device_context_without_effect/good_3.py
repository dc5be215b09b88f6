import torch
import torch.distributed as dist

dist.init_process_group("nccl")
context = torch.cuda.device(local_rank)
with context:
    model = build().cuda()
