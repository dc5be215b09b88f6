import torch.distributed as dist
from torch.utils.data import DistributedSampler


def sampler_of(data):
    return DistributedSampler(data, dist.get_rank(), dist.get_world_size())  # dt: DT228
