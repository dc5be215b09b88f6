from torch.utils.data import DataLoader, DistributedSampler


def make(dataset, distributed):
    shuffle, sampler = True, None
    if distributed:
        sampler = DistributedSampler(dataset, shuffle=True)
        shuffle = False
    return DataLoader(dataset, shuffle=shuffle, sampler=sampler)
