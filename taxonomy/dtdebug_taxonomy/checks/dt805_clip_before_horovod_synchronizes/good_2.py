import torch
from torch.nn.parallel import DistributedDataParallel

model = DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.ones(1, 2)).backward()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
