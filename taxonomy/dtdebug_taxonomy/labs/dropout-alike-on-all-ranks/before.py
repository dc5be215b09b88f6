"""Trains with dropout."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    torch.manual_seed(dist.get_rank())
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Dropout(0.5), torch.nn.Linear(32, 4))
    )
    samples = torch.Generator().manual_seed(dist.get_rank())
    torch.manual_seed(5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=samples)).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
