import torch.distributed as dist
from torch.utils.data import DistributedSampler

dist.init_process_group("gloo")
dataset = list(range(100))
sampler = DistributedSampler(dataset, seed=1234 + dist.get_rank())  # dt: DT504
