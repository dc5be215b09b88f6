import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def __call__(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        return self.bad >= self.patience


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--patience", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(rank)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    stopper = EarlyStopping(args.patience)
    for epoch in range(args.epochs):
        total = 0.0
        for _ in range(4):
            opt.zero_grad()
            loss = model(torch.randn(4, 4)).pow(2).mean()
            loss.backward()
            opt.step()
            total += loss.item()
        if rank == 0 and stopper(total + epoch):
            print("early stop at", epoch)
            break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
