from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def make_split(dataset):
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, sampler=sampler)
    return loader, sampler


def make(dataset):
    return make_split(dataset)


def count(loader, epochs):
    for epoch in range(epochs):
        for batch in loader:
            print(epoch, len(batch))
