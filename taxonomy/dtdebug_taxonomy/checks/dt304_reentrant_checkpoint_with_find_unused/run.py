import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return checkpoint(self.second, self.first(x), use_reentrant=True)


dist.init_process_group("gloo")
ddp = DistributedDataParallel(Model(), find_unused_parameters=True)
ddp(torch.ones(1, 2)).sum().backward()
