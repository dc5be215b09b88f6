import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def park(ddp, rank):
    model = ddp.module.cpu()
    torch.cuda.empty_cache()
    return DDP(model.cuda(rank), device_ids=[rank])


def choose(model, args):
    model = DDP(model)
    if args.cpu:
        model = model.cpu()
    else:
        model = model.cuda()
    return model
