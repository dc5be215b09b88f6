import numpy as np
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Noisy(Dataset):
    def __getitem__(self, i):
        return np.random.randn(3) + i

    def __len__(self):
        return 10


dist.init_process_group("nccl")
np.random.seed(0 + dist.get_rank())  # dt: DT508
data = Noisy()
loader = DataLoader(data, sampler=DistributedSampler(data))
model = DDP(None)
