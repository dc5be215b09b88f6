"""The wrapper runs forward() elsewhere, and a method of the inner model makes a loss of what it gave."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.body(x)

    def loss(self, out, y):
        return (self.body(out) - y).pow(2).mean()

    def penalty(self):
        return self.body.weight.norm()


def predict(wrapped, x):
    return wrapped(x)


def train(loader, optimizer):
    net = DDP(Net())
    for x, y in loader:
        loss = net.module.loss(predict(net, x), y) + net.module.penalty()
        loss.backward()
        optimizer.step()


def penalise(loader, optimizer):
    other = DDP(Net())
    other.module.penalty().backward()
    optimizer.step()
