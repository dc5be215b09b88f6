"""Trains an encoder, then encodes some samples."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = torch.nn.Linear(8, 4), torch.nn.Linear(4, 1)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).relu()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encode(x))


def train() -> None:
    model = DistributedDataParallel(Encoder())
    model(torch.randn(4, 8)).square().mean().backward()
    with torch.no_grad():
        codes = model.module.encode(torch.randn(4, 8))
    if dist.get_rank() == 0:
        print(f"encoded {len(codes)} samples", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
