import argparse

import torch.multiprocessing as mp

parser = argparse.ArgumentParser()
parser.add_argument("--world-size", type=int)
args = parser.parse_args()


def worker(rank, size):
    print(rank, size)


if __name__ == "__main__":
    mp.spawn(worker, args=(args.world_size,), nprocs=4)
