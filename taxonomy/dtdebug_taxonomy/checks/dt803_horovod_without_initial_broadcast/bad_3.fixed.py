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
        hvt.broadcast_parameters(self.net.state_dict(), root_rank=0)
        hvt.broadcast_optimizer_state(self.opt, root_rank=0)


if __name__ == "__main__":
    hvt.init()
    Trainer(argparse.Namespace(lr=0.1))
