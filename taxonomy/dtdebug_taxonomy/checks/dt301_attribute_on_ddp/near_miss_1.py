import torch
from torch.nn.parallel import DistributedDataParallel


class Wrapper(DistributedDataParallel):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


model = Wrapper(torch.nn.Linear(2, 2))
model.encode(torch.ones(2))
ddp = DistributedDataParallel(torch.nn.Linear(2, 2))
ddp.best = 0.5
print(ddp.best)
try:
    ddp.encode(torch.ones(2))
except AttributeError:
    ddp.module.encode(torch.ones(2))
