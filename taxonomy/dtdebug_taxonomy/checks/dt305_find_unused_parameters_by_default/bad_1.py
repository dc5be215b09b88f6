import torch
from torch.nn.parallel import DistributedDataParallel as DDP

ddp = DDP(torch.nn.Linear(1, 1), find_unused_parameters=True)  # dt: DT305
