"""A multilayer perceptron whose widths are given on the command line."""
import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", type=int, default=10)
    parser.add_argument("--widths", nargs="+", default=[64, 32])
    parser.add_argument("--dropout", type=float, default=0.1)
    return parser.parse_args(["--widths", "48", "16"])


class MLP(nn.Module):
    def __init__(self, sizes, dropout):
        super().__init__()
        layers = []
        for before, after in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(before, after), nn.ReLU(), nn.Dropout(dropout)]
        self.net = nn.Sequential(*layers[:-2])

    def forward(self, x):
        return self.net(x)


def main():
    args = parse()
    dist.init_process_group("gloo")
    model = DistributedDataParallel(MLP([args.input, *args.widths], args.dropout))
    model(torch.randn(3, args.input)).sum().backward()
    dist.destroy_process_group()


main()
