import os

import torch.distributed as dist


def make(path):
    if not os.path.exists(path):
        os.makedirs(path)


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        make("results")
    dist.barrier()


main()
