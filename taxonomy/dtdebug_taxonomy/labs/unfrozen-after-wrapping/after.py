"""Trains the head first, then all."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 4))
    net[0].requires_grad_(False)
    model = DistributedDataParallel(net)
    torch.manual_seed(dist.get_rank() + 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for n in range(12):
        if n == 4:
            net[0].requires_grad_(True)
            model = DistributedDataParallel(net)
        optimizer.zero_grad()
        model(torch.randn(8, 4)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
