"""Trains and saves a checkpoint at the end."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self) -> None:
        self.group = dist.new_group()
        self.model = DistributedDataParallel(torch.nn.Linear(8, 1))
        self.step = 0

    def fit(self, steps: int) -> None:
        for self.step in range(1, steps + 1):
            self.model(torch.randn(4, 8)).square().mean().backward()

    def save(self, path: str) -> None:
        if dist.get_rank() == 0:
            torch.save({"model": self.model.module.state_dict(), "step": self.step}, path)
            print(f"saved step {self.step}", flush=True)


def train() -> None:
    trainer = Trainer()
    trainer.fit(3)
    trainer.save("last.pt")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
