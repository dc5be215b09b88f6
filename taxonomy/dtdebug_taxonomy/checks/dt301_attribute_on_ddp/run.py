import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Model(torch.nn.Linear):
    def encode(self, x):
        return self(x)


dist.init_process_group("gloo")
ddp = DistributedDataParallel(Model(2, 2))
ddp.encode(torch.ones(2))
