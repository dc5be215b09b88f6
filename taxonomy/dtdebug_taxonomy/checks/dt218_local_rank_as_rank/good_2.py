import os

import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank())
