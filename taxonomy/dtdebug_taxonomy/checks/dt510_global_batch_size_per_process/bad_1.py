import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler


def make(data, args):
    dist.init_process_group("nccl")
    sampler = DistributedSampler(data)
    return DataLoader(data, batch_size=args.global_batch_size, sampler=sampler)  # dt: DT510
