import os

import torch.multiprocessing as mp

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"


def worker(rank, world_size):
    print(rank, world_size)


if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)  # dt: DT904
