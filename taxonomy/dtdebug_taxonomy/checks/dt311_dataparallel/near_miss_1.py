from torch import nn
from torch.nn import DataParallel

model = nn.DataParallel(nn.Linear(1, 1), device_ids=[0])
types = (DataParallel, nn.parallel.DistributedDataParallel)
