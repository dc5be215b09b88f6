import torch
import torch.distributed as dist

dist.init_process_group("nccl")
with torch.cuda.device(local_rank):
    model = build().cuda()
