import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
lr_scaler = hvd.size()
lr = 0.01 * lr_scaler
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=lr))
