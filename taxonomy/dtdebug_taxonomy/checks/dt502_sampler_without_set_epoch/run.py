"""Compares the order of two epochs, without and with set_epoch()."""

from torch.utils.data import DistributedSampler

sampler = DistributedSampler(range(20), num_replicas=2, rank=0)
same = list(sampler) == list(sampler)
first = list(sampler)
sampler.set_epoch(1)
print(f"without set_epoch: same order {same}, with: same order {first == list(sampler)}")
