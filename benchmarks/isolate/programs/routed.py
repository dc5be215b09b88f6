import argparse
import datetime
import os

import torch
import torch.distributed as dist


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)

    def forward(self, hidden):
        hidden = torch.relu(self.inner(hidden))
        if hidden.sum().item() > 1e9:
            hidden = hidden * 0
        return hidden


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=12)
    parser.add_argument("--steps", type=int, default=5)
    return parser.parse_args()


def train(args):
    model = torch.nn.Sequential(Block(args.width), Block(args.width))
    model = torch.compile(model, backend="eager", fullgraph=True)
    for step in range(args.steps):
        loss = model(torch.randn(4, args.width)).square().mean()
        loss.backward()
        value = loss.detach().clone()
        dist.all_reduce(value)
        if dist.get_rank() == 0:
            print(f"step {step} loss {value.item():.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    train(parse())
    dist.destroy_process_group()
