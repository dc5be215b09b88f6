import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def setup():
    dist.init_process_group("gloo")
    return int(os.environ.get("LOCAL_RANK", 0))


def wrap(model, local):
    return DDP(model, device_ids=[local])


local = setup()
net = torch.nn.Linear(3, 3)
net = wrap(net, local)
print(net(torch.ones(1, 3)))
