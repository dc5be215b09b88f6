import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(1, 1))
