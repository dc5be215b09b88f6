import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset


def get_loader(args):
    data = TensorDataset(torch.randn(128, 4), torch.randn(128, 1))
    return DataLoader(data, batch_size=args.batch_size, shuffle=True, drop_last=True)


def train(args):
    loader = get_loader(args)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(args.epochs):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    dist.init_process_group("gloo")
    train(parser.parse_args())
    dist.destroy_process_group()
