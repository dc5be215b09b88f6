import argparse

import torch
from horovod import torch as hvt


class Trainer:
    def __init__(self, args):
        self.net = torch.nn.Linear(1, 1)
        base = torch.optim.Adam(self.net.parameters(), lr=args.lr * hvt.size())
        self.opt = hvt.DistributedOptimizer(  # dt: DT803
            base,
            op=hvt.Average,
        )


if __name__ == "__main__":
    hvt.init()
    Trainer(argparse.Namespace(lr=0.1))
