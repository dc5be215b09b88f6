"""Keep a part of the averaged gradient on each rank, as ZeRO does."""

import torch
import torch.distributed as dist
from torch import nn


class Shards:
    """Flat gradient of a model, of which each rank keeps one part."""

    def __init__(self, model):
        self.parameters = list(model.parameters())
        self.size = sum(p.numel() for p in self.parameters)
        self.pad = -self.size % dist.get_world_size()
        self.part = torch.zeros(self.size + self.pad)

    def flat(self):
        rows = [p.grad.reshape(-1) for p in self.parameters]
        return torch.cat([*rows, torch.zeros(self.pad)])

    def reduce(self):
        dist.reduce_scatter_tensor(self.part, self.flat())
        self.part /= dist.get_world_size()
        return self.part


def train(model, shards, steps):
    for _ in range(steps):
        model.zero_grad()
        loss = model(torch.randn(4, 6)).square().mean()
        loss.backward()
        part = shards.reduce()
    return part.norm().item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 1))
    shards = Shards(model)
    norm = train(model, shards, steps=3)
    print("rank", dist.get_rank(), "norm", norm)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
