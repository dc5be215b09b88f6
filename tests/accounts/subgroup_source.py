"""Each expert group takes its weights from its first member."""

import torch
import torch.distributed as dist
from torch import nn


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.sigmoid(self.gate(x)) * x)


def make_groups(size):
    """Return the group of this rank and the members of it."""
    mine = None
    for first in range(0, dist.get_world_size(), size):
        members = list(range(first, first + size))
        group = dist.new_group(members)
        if dist.get_rank() in members:
            mine = group, members
    return mine


def share_weights(model, group):
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0, group=group)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    group, members = make_groups(size=1)
    model = Expert(8)
    share_weights(model, group)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= len(members)
        optimizer.step()
    print("rank", dist.get_rank(), "loss", loss.item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
