"""The samples that are left are measured on their own."""

from torch.utils.data import DataLoader, DistributedSampler, Subset

sampler = DistributedSampler(val_set, shuffle=False, drop_last=True)
loader = DataLoader(val_set, sampler=sampler)
rest = Subset(val_set, range(len(sampler) * world_size, len(val_set)))
