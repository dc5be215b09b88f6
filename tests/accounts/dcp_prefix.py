"""Save with one script's layout and resume with another's."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn

FOLDER = os.path.join(tempfile.gettempdir(), "run-dcp-prefix")


class State:
    """What a checkpoint holds."""

    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer

    def to_save(self):
        return {"model": self.model.state_dict(), "step": torch.tensor(10)}

    def to_load(self):
        return {"net": self.model.state_dict(), "step": torch.tensor(0)}


def train(state, steps):
    for _ in range(steps):
        loss = state.model(torch.randn(4, 8)).square().mean()
        state.optimizer.zero_grad()
        loss.backward()
        state.optimizer.step()


def resume(state, folder):
    loaded = state.to_load()
    dcp.load(loaded, checkpoint_id=folder)
    return int(loaded["step"])


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER, ignore_errors=True)
    dist.barrier()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    state = State(model, torch.optim.SGD(model.parameters(), lr=0.1))
    train(state, 10)
    dcp.save(state.to_save(), checkpoint_id=FOLDER)
    dist.barrier()
    print("resumed at", resume(state, FOLDER))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
