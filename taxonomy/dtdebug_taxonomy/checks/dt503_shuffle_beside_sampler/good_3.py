from torch.utils.data import DataLoader, DistributedSampler


def make(dataset, distributed, sampler=None):
    loader = DataLoader(dataset, shuffle=True, sampler=None)
    if distributed:
        loader = DataLoader(dataset, sampler=DistributedSampler(dataset, shuffle=True))
    return loader, DataLoader(dataset, shuffle=True, sampler=sampler)
