import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def set_seed(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def main(args):
    dist.init_process_group("nccl")
    set_seed(args.seed)
    model = DDP(build())
    for x in loader:
        t = torch.rand(len(x))  # dt: DT516
        loss = model(x, t).mean()
        loss.backward()
