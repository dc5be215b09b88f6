"""A method of the model is called on its wrapper; without a launcher the model is not wrapped."""

import os

import torch
import torch.distributed as dist


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 4)

    def encode(self, x):
        return torch.tanh(self.inner(x))

    def forward(self, x):
        return self.encode(x).sum()


def main():
    model = Model()
    distributed = "RANK" in os.environ
    if distributed:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        model(torch.randn(5, 8)).backward()
        opt.step()
    print(model.encode(torch.ones(1, 8)).mean().item())
    if distributed:
        dist.destroy_process_group()


main()
