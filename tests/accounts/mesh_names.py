"""Two-dimensional mesh: data parallel outside, tensor parallel inside."""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


@dataclass
class Parallel:
    replicas: int = 1
    tensor: int = 2
    names: tuple = ("replicate", "shard")


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Engine:
    def __init__(self, parallel):
        self.parallel = parallel
        self.mesh = init_device_mesh(
            "cpu", (parallel.replicas, parallel.tensor), mesh_dim_names=parallel.names
        )

    def tensor_mesh(self):
        return self.mesh["tensor"]

    def prepare(self, model):
        plan = {"up": ColwiseParallel(), "down": RowwiseParallel()}
        return parallelize_module(model, self.tensor_mesh(), plan)


def main():
    torch.manual_seed(int(os.environ.get("SEED", "1")))
    dist.init_process_group("gloo")
    engine = Engine(Parallel())
    model = engine.prepare(Block(16))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(3):
        loss = model(torch.randn(4, 16)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    if dist.get_rank() == 0:
        print("done", step)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
