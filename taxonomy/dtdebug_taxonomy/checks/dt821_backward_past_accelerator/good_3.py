import torch

model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
loss = model(torch.ones(1, 2)).mean()
loss.backward()
