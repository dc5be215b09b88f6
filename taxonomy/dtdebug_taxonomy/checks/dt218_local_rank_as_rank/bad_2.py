import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def loader(dataset, args):
    sampler = DistributedSampler(
        dataset,
        num_replicas=dist.get_world_size(),
        rank=args.local_rank,  # dt: DT218
    )
    return DataLoader(dataset, sampler=sampler)
