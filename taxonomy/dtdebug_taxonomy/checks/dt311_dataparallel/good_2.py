from torch import nn


def wrap(model, args):
    if args.distributed:
        return nn.parallel.DistributedDataParallel(model)
    return nn.DataParallel(model)
