import os

import torch.distributed as dist
import torch.multiprocessing as mp


def train(world_size, epochs):
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    print(epochs)


if __name__ == "__main__":
    mp.spawn(train, args=(2, 3), nprocs=2)  # dt: DT230
