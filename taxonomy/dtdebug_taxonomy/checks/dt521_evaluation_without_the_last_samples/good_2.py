from torch.utils.data import DataLoader, DistributedSampler


def build(dataset, training):
    return DataLoader(dataset, sampler=DistributedSampler(dataset), drop_last=training)
