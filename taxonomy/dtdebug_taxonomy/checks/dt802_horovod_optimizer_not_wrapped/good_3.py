import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
print(hvd.rank(), model(torch.ones(1, 2)))
