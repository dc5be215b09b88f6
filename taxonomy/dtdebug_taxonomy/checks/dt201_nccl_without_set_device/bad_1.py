import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")  # dt: DT201
model = DDP(torch.nn.Linear(2, 2).cuda())
