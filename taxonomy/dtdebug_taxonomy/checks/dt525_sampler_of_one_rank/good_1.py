import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(data, model):
    rank, size = dist.get_rank(), dist.get_world_size()
    return DistributedDataParallel(model), DistributedSampler(data, num_replicas=size, rank=rank)
