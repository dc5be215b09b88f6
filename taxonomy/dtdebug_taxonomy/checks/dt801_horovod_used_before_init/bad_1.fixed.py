import horovod.torch as hvd
import torch

hvd.init()
torch.cuda.set_device(hvd.local_rank())  # dt: DT801
model = torch.nn.Linear(2, 2).cuda()
optimizer = hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size()))
