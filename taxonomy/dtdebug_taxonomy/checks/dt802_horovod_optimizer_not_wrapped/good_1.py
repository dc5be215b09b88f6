import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer = hvd.DistributedOptimizer(optimizer)
model(torch.ones(1, 2)).backward()
