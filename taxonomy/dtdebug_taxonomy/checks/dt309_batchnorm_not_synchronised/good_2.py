import torch
from torch import nn

torch.distributed.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)))
