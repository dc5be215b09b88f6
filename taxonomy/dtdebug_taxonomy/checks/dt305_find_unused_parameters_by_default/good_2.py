import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def build(model, args):
    return DDP(model, device_ids=[args.gpu], find_unused_parameters=args.find_unused_parameters)
