import os

import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, folder):
    dist.init_process_group("nccl", rank=rank, world_size=2)
    if dist.get_rank() == 0:
        print(folder)


if __name__ == "__main__":
    with open(os.path.join("out", "config.yaml"), "w") as file:  # by the one process that starts the ranks
        file.write("lr: 0.1")
    mp.spawn(worker, args=("out",), nprocs=2)
