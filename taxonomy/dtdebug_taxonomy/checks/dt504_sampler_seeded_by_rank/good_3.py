from torch.utils.data import DistributedSampler


def make(dataset, rank, world_size, epoch_seed):
    a = DistributedSampler(dataset, num_replicas=world_size, rank=rank, seed=epoch_seed)
    b = DistributedSampler(dataset, shuffle=False, seed=rank)
    return a, b
