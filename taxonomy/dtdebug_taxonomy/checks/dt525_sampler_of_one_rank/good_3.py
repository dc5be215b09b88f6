from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(data, model):
    world_size = 1
    return DistributedDataParallel(model), DistributedSampler(data, num_replicas=world_size, rank=0)
