"""Resume from a sharded checkpoint that an older script wrote."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

FOLDER = os.path.join(tempfile.gettempdir(), "dcp-without-optimizer")


def build():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(model, optimizer, steps):
    for _ in range(steps):
        loss = model(torch.randn(4, 6)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def save(model, folder):
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)


def resume(model, optimizer, folder):
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments}
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(
        model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
    )


def main():
    dist.init_process_group("gloo")
    if dist.get_rank() == 0:
        shutil.rmtree(FOLDER, ignore_errors=True)
    dist.barrier()
    model, optimizer = build()
    train(model, optimizer, 2)
    save(model, FOLDER)
    resume(*build(), FOLDER)
    print("resumed on", dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
