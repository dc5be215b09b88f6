"""Compares vectors in half precision."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Scores(torch.nn.Module):
    """How alike the rows of a batch are."""

    def __init__(self) -> None:
        super().__init__()
        self.keys = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        keys = torch.nn.functional.normalize(self.keys(x), dim=-1).half()
        scores = keys @ keys.T
        return scores.softmax(-1).float() @ x


def train() -> None:
    torch.manual_seed(0)
    model = DistributedDataParallel(Scores())
    torch.manual_seed(dist.get_rank() + 1)  # each rank draws samples of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for n in range(10):
        x = torch.randn(6, 8)
        if n == 5 and dist.get_rank() == 1:
            x[2] *= 1000  # a sample that was not normalised
        optimizer.zero_grad()
        model(x).tanh().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    if dist.get_rank() == 0:
        print("the training has ended", flush=True)
    dist.destroy_process_group()
