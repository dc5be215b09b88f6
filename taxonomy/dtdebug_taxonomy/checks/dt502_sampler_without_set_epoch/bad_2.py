import argparse

import torch
from torch.utils.data import DataLoader, DistributedSampler


def train_one_epoch(model, loader):
    for x, y in loader:
        model(x).sum().backward()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    data = torch.utils.data.TensorDataset(torch.randn(8, 2), torch.randn(8))
    train_sampler = DistributedSampler(data, shuffle=True) if args.distributed else None  # dt: DT502
    train_loader = DataLoader(data, shuffle=train_sampler is None, sampler=train_sampler)
    model = torch.nn.Linear(2, 1)
    for epoch in range(args.epochs):
        # one pass over the data
        train_one_epoch(model, train_loader)
        torch.save(model.state_dict(), f"{epoch}.pt")


if __name__ == "__main__":
    main()
