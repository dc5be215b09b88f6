import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
dataset = list(range(100))
sampler = DistributedSampler(dataset, rank=dist.get_rank(), seed=1234)
