import os

import torch


def start():
    rank = int(os.environ["LOCAL_RANK"])
    world_size = torch.cuda.device_count()
    return rank, world_size
