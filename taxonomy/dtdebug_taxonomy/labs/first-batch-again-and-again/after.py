"""Counts its steps, not its epochs."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader


def train() -> None:
    torch.manual_seed(0)
    data = torch.randn(96, 4)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(data[dist.get_rank() :: dist.get_world_size()], batch_size=4)
    batches = iter(loader)
    for _ in range(12):
        x = next(batches)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
