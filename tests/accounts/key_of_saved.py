"""Save and resume a trainer."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Checkpointer:
    def __init__(self, folder, model, optimizer):
        self.path = os.path.join(folder, "key-of-saved.pt")
        self.model = model
        self.optimizer = optimizer

    def save(self, step):
        if dist.get_rank() == 0:
            state = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "global_step": step,
            }
            torch.save(state, self.path)
        dist.barrier()

    def load(self):
        state = torch.load(self.path, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        return state["step"]


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    keeper = Checkpointer(tempfile.gettempdir(), model, optimizer)
    train(model, optimizer, 3)
    keeper.save(3)
    first = keeper.load()
    print("resumed at", first)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
