"""Options of the command line make the network."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--hidden", help="width of the hidden layer")
    parser.add_argument("--classes", type=int, default=4)
    return parser.parse_args(["--hidden", "48"])


class Net(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.second = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def make_batch(size, classes):
    return torch.randn(size, 10), torch.randint(classes, (size,))


def main():
    options = read_options()
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = DDP(Net(10, options.hidden, options.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    for _ in range(options.steps):
        x, y = make_batch(16, options.classes)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print("loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
