"""The argument comes from callers in other modules: it may be any rank."""

from torch.utils.data import DistributedSampler


def get_loader(dataset, world_size, local_rank):
    return make(dataset, DistributedSampler(dataset, num_replicas=world_size, rank=local_rank))
