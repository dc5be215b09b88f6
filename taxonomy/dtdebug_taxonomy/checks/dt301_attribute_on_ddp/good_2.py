import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def save(model, path):
    model = model.module if hasattr(model, "module") else model
    torch.save(model.weights(), path)


def main(args):
    model = torch.nn.Linear(2, 2)
    if args.distributed:
        model = DDP(model)
    bare = model.module if args.distributed else model
    bare.encode(1)
    if isinstance(model, DDP):
        model = model.module
    model.encode(2)
    save(model, "x")
