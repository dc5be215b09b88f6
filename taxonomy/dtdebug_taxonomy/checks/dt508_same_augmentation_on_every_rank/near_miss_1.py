import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torchvision import transforms

dist.init_process_group("nccl")
random.seed(0)
augment = transforms.RandomHorizontalFlip()
torch.manual_seed(0 + dist.get_rank())
model = DDP(torch.nn.Linear(1, 1))
