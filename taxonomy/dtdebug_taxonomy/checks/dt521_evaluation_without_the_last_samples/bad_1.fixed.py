from torch.utils.data import DataLoader, DistributedSampler

sampler = DistributedSampler(val_set, shuffle=False, drop_last=False)  # dt: DT521
loader = DataLoader(val_set, sampler=sampler, batch_size=8)
