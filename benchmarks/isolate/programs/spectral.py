"""A penalty reads the weights of a sharded module between its forward and its backward pass."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(12, 12)

    def forward(self, x):
        return torch.tanh(self.inner(x))

    def penalty(self, probe):
        return (probe @ self.inner.weight.T).square().mean()


def main():
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    layers = torch.nn.ModuleList([Layer() for _ in range(2)])
    for layer in layers:
        fully_shard(layer, mesh=mesh, reshard_after_forward=True)
    optimizer = torch.optim.SGD(layers.parameters(), lr=1e-2)
    for step in range(4):
        x = torch.randn(3, 12)
        for layer in layers:
            x = layer(x)
        loss = x.square().mean() + 0.1 * sum(layer.penalty(torch.ones(1, 12)) for layer in layers)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
