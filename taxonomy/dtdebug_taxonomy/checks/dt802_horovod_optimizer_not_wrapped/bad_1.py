import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # dt: DT802
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
model(torch.ones(1, 2)).backward()
optimizer.step()
