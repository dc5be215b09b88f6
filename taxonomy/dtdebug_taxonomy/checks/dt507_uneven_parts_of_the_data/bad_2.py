import argparse

import torch
from torch.utils.data import DataLoader, Subset


class Trainer:
    def __init__(self, args, data):
        self.args = args
        mine = list(range(len(data)))[args.rank :: args.world_size]  # dt: DT507
        self.loader = DataLoader(Subset(data, mine), batch_size=1)
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))

    def train(self):
        for x in self.loader:
            self.model(x).backward()


if __name__ == "__main__":
    torch.distributed.init_process_group("nccl")
    Trainer(argparse.Namespace(rank=0, world_size=2), [1.0, 2.0]).train()
