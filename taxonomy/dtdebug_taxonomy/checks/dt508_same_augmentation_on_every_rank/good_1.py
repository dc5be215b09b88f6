import numpy as np
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


class Noisy:
    def __getitem__(self, i):
        return np.random.randn(3) + i


dist.init_process_group("nccl")
np.random.seed(0 + dist.get_rank())
model = DDP(Noisy())
