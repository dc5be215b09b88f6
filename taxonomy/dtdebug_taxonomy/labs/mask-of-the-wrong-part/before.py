"""Leaves padded samples out of the loss."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    torch.manual_seed(dist.get_rank() + 1)  # each rank draws samples of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    valid = torch.arange(16) < 8  # of both ranks' samples
    for _ in range(12):
        x = torch.randn(8, 4)
        mask = valid.view(2, 8)[dist.get_rank()]
        loss = (model(x).square().mean(1) * mask).sum() / mask.sum().clamp(min=1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
