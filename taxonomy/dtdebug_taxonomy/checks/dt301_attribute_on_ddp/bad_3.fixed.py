import argparse

import torch
from torch.nn import DataParallel


def train(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in batches:
        getattr(net, "module", net).compute_loss(x).backward()  # dt: DT301
        optimizer.step()


def main(args):
    net = torch.nn.Linear(2, 2)
    if args.parallel:
        net = DataParallel(net)
        net = net.cuda()
    else:
        net = torch.nn.parallel.DistributedDataParallel(net)
    train(net, [])


if __name__ == "__main__":
    main(argparse.ArgumentParser().parse_args())
