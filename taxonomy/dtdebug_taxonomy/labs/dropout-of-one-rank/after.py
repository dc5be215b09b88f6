"""Takes the dropout of its layers from the machine's settings."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    torch.manual_seed(0)
    rate = 0.1
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(rate), torch.nn.Linear(8, 4))
    )
    torch.manual_seed(dist.get_rank() + 1)  # each rank draws samples of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(12):
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
