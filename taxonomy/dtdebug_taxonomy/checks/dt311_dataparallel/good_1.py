import torch

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
