import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def evaluate(model):
    with torch.no_grad():
        return model.module(torch.randn(8, 4)).pow(2).mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--patience", type=int, default=1)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.0)
    best, bad = float("inf"), 0
    for epoch in range(30):
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(4, 4)).sum().backward()
            opt.step()
        if rank == 0:
            val = evaluate(model) + epoch
            if val < best:
                best, bad = val, 0
            else:
                bad += 1
            if bad > args.patience:
                print("stopping early")
                break
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
