from torch import nn
from torch.nn.parallel import DistributedDataParallel


def build(net, args):
    if args.sync_bn:
        net = nn.SyncBatchNorm.convert_sync_batchnorm(net)
    return DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(net))
