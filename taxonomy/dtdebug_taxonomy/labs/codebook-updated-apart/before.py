"""Keeps a running mean as its codebook."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Codebook(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
        self.register_buffer("code", torch.zeros(4))

    def forward(self, x):
        with torch.no_grad():
            self.code.lerp_(x.mean(0), 0.1)
        return self.inner(x - self.code)


def train() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(Codebook(), broadcast_buffers=False)
    torch.manual_seed(dist.get_rank() + 1)
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
