import argparse

import torch
from torch.multiprocessing import spawn


def worker(rank, args):
    print(rank, args)


def main():
    args = argparse.ArgumentParser().parse_args()
    spawn(worker, args=(args,), nprocs=torch.cuda.device_count())


main()  # dt: DT214
