"""A model with a second head."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Settings:
    width: int = 16
    auxiliary: bool = False
    find_unused: bool = False
    steps: int = 4


class Net(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.settings = settings
        self.body = nn.Linear(8, settings.width)
        self.head = nn.Linear(settings.width, 2)
        self.extra = nn.Linear(settings.width, 1)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        if self.settings.auxiliary:
            return self.head(hidden), self.extra(hidden)
        return self.head(hidden), None


def loss_of(outputs, labels):
    main, extra = outputs
    loss = nn.functional.cross_entropy(main, labels)
    return loss if extra is None else loss + 0.1 * extra.square().mean()


def main():
    settings = Settings()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(Net(settings), find_unused_parameters=settings.find_unused)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(settings.steps):
        loss = loss_of(model(torch.randn(4, 8)), torch.randint(2, (4,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
