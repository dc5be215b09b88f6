"""Two heads, of which only one is used in a step: DDP waits for gradients that never come."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class TwoHeads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Linear(8, 16)
        self.heads = torch.nn.ModuleList(torch.nn.Linear(16, 1) for _ in range(2))

    def forward(self, x: torch.Tensor, task: int) -> torch.Tensor:
        return self.heads[task](self.body(x).relu())


def train() -> None:
    torch.manual_seed(int(os.environ["RANK"]))
    model = DistributedDataParallel(TwoHeads())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(32, 8), task=step % 2).square().mean()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(f"finished 4 steps, loss {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()  # the model is gone before the process group is: else the exit of a process may abort it
    dist.barrier()
    dist.destroy_process_group()
