"""Makes a loader with both."""

from torch.utils.data import DataLoader, DistributedSampler

data = list(range(10))
DataLoader(data, shuffle=True, sampler=DistributedSampler(data, num_replicas=2, rank=0))
