import argparse

import torch
import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=0)
args = parser.parse_args()


def worker(index):
    args.local_rank = index
    torch.cuda.set_device(args.local_rank)


if __name__ == "__main__":
    mp.spawn(worker, nprocs=2)
