import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(data, model):
    train_sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=0)
    train_sampler.rank = dist.get_rank()
    return DistributedDataParallel(model), train_sampler
