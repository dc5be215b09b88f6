import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def load_optimizer(path, optimizer):
    checkpoint = torch.load(os.path.join(path, "optimizer.bin"))  # dt: DT601
    optimizer.load_state_dict(checkpoint["dense"])


def fit(model, optimizer, path, device):
    model = DistributedDataParallel(model, device_ids=[device])
    load_optimizer(path, optimizer)


def resume(args, model):
    dist.init_process_group("nccl")
    model.load_state_dict(torch.load(args.checkpoint, map_location="cuda:0"))  # dt: DT601
