import os

import torch.distributed as dist


def main(folder):
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if rank != 0:
        dist.barrier()
    if not os.path.exists(folder):
        os.makedirs(folder)
    if rank == 0:
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main("out")
