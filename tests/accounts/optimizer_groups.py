"""Resume a run whose optimizer was saved."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

PATH = os.path.join(tempfile.gettempdir(), "optimizer-groups.pt")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.norm(torch.relu(self.body(x))))


def build_optimizer(model, decay, split=True):
    if not split:
        return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=decay)
    weights = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim <= 1]
    return torch.optim.AdamW(
        [{"params": weights, "weight_decay": decay}, {"params": others, "weight_decay": 0.0}], lr=1e-3
    )


def first_run():
    model = DDP(Net())
    optimizer = build_optimizer(model, 0.1)
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, PATH)
    dist.barrier()


def second_run():
    model = DDP(Net())
    optimizer = build_optimizer(model, 0.1, split=False)
    saved = torch.load(PATH, weights_only=True)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return model


def main():
    dist.init_process_group("gloo")
    first_run()
    second_run()
    print("resumed on", dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
