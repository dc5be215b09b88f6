from torch.utils.data import DataLoader, DistributedSampler

train_loader = DataLoader(train_set, sampler=DistributedSampler(train_set), drop_last=True)
val_loader = DataLoader(val_set, sampler=DistributedSampler(val_set, shuffle=False))
