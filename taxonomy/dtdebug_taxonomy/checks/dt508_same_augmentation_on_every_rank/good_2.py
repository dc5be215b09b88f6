import numpy as np
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Plain:
    def __getitem__(self, i):
        return i


dist.init_process_group("nccl")
np.random.seed(0)
model = DDP(Plain())
