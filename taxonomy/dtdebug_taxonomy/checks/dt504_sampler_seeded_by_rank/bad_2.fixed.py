import torch


def make(dataset, args):
    seed = args.seed + args.rank
    return torch.utils.data.distributed.DistributedSampler(
        dataset,
        num_replicas=args.world_size,
        rank=args.rank,
        shuffle=True,  # dt: DT504
    )
