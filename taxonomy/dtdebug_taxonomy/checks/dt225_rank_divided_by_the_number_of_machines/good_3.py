import torch
import torch.distributed as dist

local_rank = dist.get_rank() % torch.cuda.device_count()
