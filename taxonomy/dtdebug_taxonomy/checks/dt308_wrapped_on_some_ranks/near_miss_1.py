import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def prepare(model, args):
    if args.gpu is not None:
        model = DDP(model, device_ids=[args.gpu])
    elif args.rank == 0:
        model = torch.nn.DataParallel(model)
    return model
