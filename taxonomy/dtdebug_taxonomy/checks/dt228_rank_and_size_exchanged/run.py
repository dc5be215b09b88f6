import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
DistributedSampler(range(8), dist.get_rank(), dist.get_world_size())
