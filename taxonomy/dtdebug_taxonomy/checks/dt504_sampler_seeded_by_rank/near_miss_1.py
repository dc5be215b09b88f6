import torch
from torch.utils.data import DistributedSampler, RandomSampler


def make(dataset, seed, rank):
    own = RandomSampler(dataset, generator=torch.Generator().manual_seed(seed + rank))
    shared = DistributedSampler(dataset, seed=seed)
    return own, shared
