import horovod.torch as hvd
import torch


@hvd.elastic.run
def train(state):
    state.commit()


hvd.init()
model = torch.nn.Linear(2, 1)
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))
train(hvd.elastic.TorchState(model=model, optimizer=optimizer))
