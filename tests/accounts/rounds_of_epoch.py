"""Train for a fixed number of steps in each epoch."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def make_data():
    x = torch.randn(64, 8)
    return TensorDataset(x, x.sum(-1, keepdim=True))


class Plan:
    """How long an epoch is."""

    def __init__(self, dataset, batch):
        self.batch = batch
        self.steps = len(dataset) // batch


class Trainer:
    def __init__(self, args):
        self.data = make_data()
        self.plan = Plan(self.data, args.batch)
        self.sampler = DistributedSampler(self.data)
        self.loader = DataLoader(self.data, args.batch, sampler=self.sampler)
        self.model = DistributedDataParallel(nn.Linear(8, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def epoch(self, number):
        self.sampler.set_epoch(number)
        batches = iter(self.loader)
        for _ in range(self.plan.steps):
            x, y = next(batches)
            loss = (self.model(x) - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    trainer = Trainer(args)
    for number in range(args.epochs):
        print(number, trainer.epoch(number))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
