from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler


def prepare(data, model):
    return DistributedDataParallel(model), DistributedSampler(data)
