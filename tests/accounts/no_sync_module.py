"""Accumulate gradients without exchanging them at each step."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1))

    def forward(self, x):
        return self.layers(x)


class Accumulator:
    """Runs one optimizer step over several micro-batches."""

    def __init__(self, model, parts):
        self.model = model
        self.parallel = DistributedDataParallel(model)
        self.parts = parts
        self.optimizer = torch.optim.SGD(self.parallel.parameters(), lr=0.1)

    def quiet(self, number):
        if number < self.parts - 1:
            return self.model.no_sync()
        return contextlib.nullcontext()

    def step(self, batches):
        self.optimizer.zero_grad()
        total = 0.0
        for number, batch in enumerate(batches):
            with self.quiet(number):
                loss = self.parallel(batch).square().mean() / self.parts
                loss.backward()
            total += loss.item()
        self.optimizer.step()
        return total


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    accumulator = Accumulator(Net(6), parts=4)
    for _ in range(3):
        loss = accumulator.step([torch.randn(4, 6) for _ in range(4)])
    if dist.get_rank() == 0:
        print("loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
