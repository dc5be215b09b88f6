import argparse

import torch.distributed as dist
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--spawn", action="store_true")


def worker(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


if __name__ == "__main__":
    args = parser.parse_args()
    if args.spawn:
        mp.spawn(worker, args=(4,), nprocs=4)
    else:
        worker(0, 1)
