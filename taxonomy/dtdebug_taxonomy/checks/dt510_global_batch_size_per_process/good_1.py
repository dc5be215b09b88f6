import torch.distributed as dist
from torch.utils.data import DataLoader


def make(data, args):
    dist.init_process_group("nccl")
    return DataLoader(data, batch_size=args.global_batch_size // dist.get_world_size())
