import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

from data import make_sampler

dist.init_process_group("nccl")
model = DDP(None)
test_loader = DataLoader([1, 2], batch_size=2, shuffle=False)
train_loader = DataLoader([1, 2], sampler=make_sampler([1, 2]))
if dist.get_rank() == 0:
    preview = DataLoader([1, 2], shuffle=True)
