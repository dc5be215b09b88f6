import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).cuda()
model = nn.parallel.DistributedDataParallel(model)  # dt: DT309
