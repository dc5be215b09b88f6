import os

import torch.distributed as dist


def start():
    rank = int(os.environ["RANK"])  # dt: DT220
    world_size = int(os.environ["WORLD_SIZE"])
    dist.init_process_group("nccl")
    return rank, world_size
