"""Weights are saved of the wrapped model and read into one that is not."""

import io
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def network():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def main():
    dist.init_process_group("gloo")
    model = DistributedDataParallel(network())
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        opt.zero_grad()
        model(torch.randn(6, 8)).square().mean().backward()
        opt.step()
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "step": 3}, buffer)
    dist.barrier()
    buffer.seek(0)
    again = network()
    again.load_state_dict(torch.load(buffer, weights_only=True)["model"])
    if int(os.environ["RANK"]) == 0:
        print("resumed")
    dist.destroy_process_group()


main()
