import os

import torch.distributed as dist


def init_processes():
    dist.init_process_group("nccl")


def main():
    distributed = int(os.environ.get("WORLD_SIZE", 1)) > 1
    if distributed:
        init_processes()
    loader = build(batch_size=64 // dist.get_world_size())  # dt: DT223
    train(loader)
