import os

import torch


def place(model, prepare):
    rank, world_size = 0, 1
    if torch.distributed.is_initialized():
        world_size = torch.distributed.get_world_size()
        rank = int(os.environ["LOCAL_RANK"])
    return prepare(model, torch.device(f"cuda:{rank}"), shards=world_size)
