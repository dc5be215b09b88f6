import random

from torch.utils.data import DistributedSampler


def make(dataset, args, rank):
    random.seed(args.seed + rank)
    return DistributedSampler(dataset, args.world_size, rank, True, args.seed)
