"""Trains, saves, and evaluates what was saved, as another program would."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def build() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))


def train() -> None:
    model = DistributedDataParallel(build())
    for step in range(1, 4):
        model(torch.randn(4, 8)).square().mean().backward()
    if dist.get_rank() == 0:
        torch.save({"step": step, "model": model.state_dict()}, "last.pt")


def evaluate() -> None:
    saved = torch.load("last.pt")
    model = build()
    model.load_state_dict(saved["model"])
    print(f"evaluated step {saved['step']}, mean {model(torch.randn(4, 8)).mean().item():.2f}", flush=True)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train()
    dist.barrier()
    dist.destroy_process_group()
    evaluate()
