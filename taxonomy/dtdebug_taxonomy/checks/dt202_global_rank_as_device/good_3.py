import os

import torch


def device_of(rank):
    if "LOCAL_RANK" in os.environ:
        index = int(os.environ["LOCAL_RANK"])
    else:
        index = int(os.environ["RANK"])
    torch.cuda.set_device(index)
    return torch.device("cuda", rank)
