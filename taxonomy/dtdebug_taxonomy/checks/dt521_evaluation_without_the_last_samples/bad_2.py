from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def loaders(train_set, test_set):
    train = DataLoader(train_set, sampler=DistributedSampler(train_set), drop_last=True)
    test = DataLoader(test_set, sampler=DistributedSampler(test_set, shuffle=False), drop_last=True)  # dt: DT521
    return train, test
