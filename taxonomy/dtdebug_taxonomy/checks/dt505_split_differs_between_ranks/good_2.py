import torch
import torch.distributed as dist
from torch.utils.data import random_split


def set_seed(seed):
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def main(args, dataset):
    dist.init_process_group("gloo")
    set_seed(args.seed)
    return random_split(dataset, [900, 100])
