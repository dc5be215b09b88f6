from torch.utils.data import BatchSampler, DataLoader, DistributedSampler


def loader(dataset):
    sampler = DistributedSampler(dataset)
    return DataLoader(dataset, batch_sampler=BatchSampler(sampler, 8, drop_last=True))
