import os

import torch.distributed as dist


def main():
    if "RANK" in os.environ:
        dist.init_process_group("nccl")
        print(int(os.environ["RANK"]))
    train()


def train():
    pass


main()
