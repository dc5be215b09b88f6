from torch.utils.data import DataLoader, DistributedSampler

loader = DataLoader(dataset, sampler=DistributedSampler(dataset), drop_last=True)
test_loader = DataLoader(test_set, drop_last=False)
