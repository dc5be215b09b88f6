import horovod.torch as hvd
import torch

hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
model(torch.ones(1, 2)).backward()
optimizer.synchronize()
torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # dt: DT805
with optimizer.skip_synchronize():
    optimizer.step()
