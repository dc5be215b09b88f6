import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(1234)
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size()))
