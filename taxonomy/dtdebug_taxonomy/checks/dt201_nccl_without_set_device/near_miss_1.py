import torch
import torch.distributed as dist

dist.init_process_group("gloo")
print(dist.is_nccl_available(), torch.zeros(1).cuda())
