from torch.utils.data import DistributedSampler


def loader(dataset, make):
    sampler = DistributedSampler(dataset)
    return make(dataset, **locals())
