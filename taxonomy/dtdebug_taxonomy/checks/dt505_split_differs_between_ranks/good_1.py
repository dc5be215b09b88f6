import torch
import torch.distributed as dist
from torch.utils.data import random_split

dist.init_process_group("gloo")
dataset = list(range(1000))
train, test = random_split(dataset, [900, 100], generator=torch.Generator().manual_seed(3))
a, b = random_split(dataset, [900, 100], torch.Generator().manual_seed(3))
