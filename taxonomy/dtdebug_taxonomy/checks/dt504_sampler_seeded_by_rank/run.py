"""Counts the samples that two ranks see, with one seed and with a seed per rank."""

from torch.utils.data import DistributedSampler

data = range(20)
one = {i for r in range(2) for i in DistributedSampler(data, num_replicas=2, rank=r, seed=1)}
own = {i for r in range(2) for i in DistributedSampler(data, num_replicas=2, rank=r, seed=1 + r)}
print(f"one seed: {len(one)} of 20 samples, a seed per rank: {len(own)} of 20")
