"""A large model is made without memory (on the meta device) and gets it on each rank."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.scale = torch.full((8,), 0.5)

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        self.scale.fill_(0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * self.scale


def train() -> None:
    with torch.device("meta"):
        model = Scaled()
    model.to_empty(device="cpu")
    model.reset_parameters()
    model = DistributedDataParallel(model)
    for step in range(2):
        model(torch.randn(4, 8)).square().mean().backward()
    if dist.get_rank() == 0:
        print(f"finished {step + 1} steps", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
