"""Options of a run in a data class that a dictionary fills."""

from dataclasses import dataclass, fields

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

RUN = {"width": 12, "rate": "3e-4", "steps": 4}


@dataclass
class Options:
    width: int = 8
    rate: float = 1e-3
    steps: int = 2
    clip: float = 1.0

    @classmethod
    def of(cls, given):
        known = {each.name for each in fields(cls)}
        unknown = set(given) - known
        if unknown:
            raise ValueError(f"unknown options {sorted(unknown)}")
        return cls(**given)


class Learner:
    def __init__(self, options):
        self.options = options
        self.model = DDP(nn.Sequential(nn.Linear(5, options.width), nn.ReLU(), nn.Linear(options.width, 1)))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=options.rate)

    def step(self, batch):
        loss = self.model(batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip)
        self.optimizer.step()
        return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    options = Options.of(RUN)
    learner = Learner(options)
    for _ in range(options.steps):
        loss = learner.step(torch.randn(8, 5))
    print("loss", loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
