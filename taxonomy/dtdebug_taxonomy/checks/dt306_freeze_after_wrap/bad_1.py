import torch
from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)))
for p in model.module[0].parameters():
    p.requires_grad = False  # dt: DT306
