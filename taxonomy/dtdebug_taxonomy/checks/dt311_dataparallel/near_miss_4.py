from torch import nn


def build(args):
    net = Net().cuda()
    if args.distributed:
        return wrap_for_ranks(net)
    if args.dp:
        net = nn.DataParallel(net)
    return net
