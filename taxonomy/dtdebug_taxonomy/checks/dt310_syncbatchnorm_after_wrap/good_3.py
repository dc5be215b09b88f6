from torch import nn


def build(net, args):
    if args.distributed:
        net = nn.parallel.DistributedDataParallel(net)
    else:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    return net
