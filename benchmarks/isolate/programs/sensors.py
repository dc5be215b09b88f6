"""Readings of a sensor that is broken are infinite, from the first batch on."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    readings = torch.randn(64, 6)
    readings[::3, 4] = float("inf")
    data = TensorDataset(readings, readings[:, :1].clone())
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False))
    model = DDP(torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Tanh(), torch.nn.Linear(12, 1)))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (x, y) in enumerate(loader):
        opt.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        opt.step()
        if not torch.isfinite(loss):
            raise ValueError(f"loss is {loss.item()} in step {step}")
    dist.destroy_process_group()


main()
