from torch.utils.data import DistributedSampler


def split(dataset):
    sampler = DistributedSampler(dataset)
    return sampler
