"""Experts of a mixture, spread over the ranks."""

import math

import torch
import torch.distributed as dist
from torch import nn


class Experts(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(count))

    def forward(self, x, own):
        return sum(self.layers[number](x) for number in own)


class Placement:
    """Numbers of the experts that a rank holds."""

    def __init__(self, experts):
        self.experts = experts
        self.each = math.ceil(experts / dist.get_world_size())

    def own(self):
        first = dist.get_rank() * self.each
        return list(range(first, first + self.each))


def forward(model, placement, x):
    out = model(x, placement.own())
    dist.all_reduce(out)
    return out


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = Experts(count=5, width=4)
    placement = Placement(experts=5)
    with torch.no_grad():
        for _ in range(3):
            out = forward(model, placement, torch.randn(2, 4))
    print("rank", dist.get_rank(), out.norm().item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
