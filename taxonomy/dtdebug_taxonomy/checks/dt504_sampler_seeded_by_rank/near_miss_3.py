import torch
import torch.distributed as dist
from torch.utils.data import DistributedSampler


def on_all_ranks(seed):
    value = torch.tensor(seed, device="cuda")
    dist.broadcast(value, src=0)
    return value.item()


def build(dataset, args):
    seed = args.seed + dist.get_rank()
    torch.manual_seed(seed)
    seed = on_all_ranks(seed)
    return DistributedSampler(dataset, shuffle=True, seed=seed)
