import os

import torch.distributed as dist


def test_net(args):
    if args.distributed:
        raise NotImplementedError
    test(args)


def test(args):
    if not os.path.exists(args.out):
        os.mkdir(args.out)


def train_net(args):
    dist.init_process_group("nccl", rank=args.rank)


test_net(args)
train_net(args)
