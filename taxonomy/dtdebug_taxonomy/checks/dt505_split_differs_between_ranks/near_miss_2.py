import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.utils.data import random_split


def train(rank, shares):
    dist.init_process_group("gloo", rank=rank, world_size=2)
    print(len(shares[rank]))


if __name__ == "__main__":
    shares = random_split(torch.arange(8), [4, 4])
    mp.spawn(train, args=(shares,), nprocs=2)
