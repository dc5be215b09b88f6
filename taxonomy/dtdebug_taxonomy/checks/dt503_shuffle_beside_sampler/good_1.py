from torch.utils.data import DataLoader, DistributedSampler

dataset = list(range(10))
sampler = DistributedSampler(dataset, 2, 0)
loader = DataLoader(dataset, batch_size=4, shuffle=False, sampler=sampler)
