import os

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class MLP(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.in_proj = nn.Linear(dim, 32)
        self.relu = nn.ReLU()
        self.out_proj = nn.Linear(32, dim)

    def forward(self, x):
        x = self.in_proj(x)
        x = self.relu(x)
        return self.out_proj(x)


class Net(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.blocks = nn.ModuleList(MLP() for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def log(rank, text):
    if rank == 0:
        print(text, flush=True)


def redistribute(mesh, values):
    sharded = distribute_tensor(values, mesh, [Shard(0)])
    replicated = sharded.redistribute(mesh, [Replicate()])
    return replicated.to_local()


def evaluate(model, mesh, step):
    torch.manual_seed(100 + step)
    batch = torch.rand(8, 16)
    with torch.no_grad():
        scores = model(batch).norm(dim=1)
    scores = redistribute(mesh, scores.contiguous())
    return scores.mean().item()


def norms(model):
    total = 0.0
    for parameter in model.parameters():
        if isinstance(parameter, DTensor):
            parameter = parameter.full_tensor()
        total += parameter.norm().item()
    return total


def main():
    world = int(os.environ["WORLD_SIZE"])
    mesh = init_device_mesh("cpu", (world,), mesh_dim_names=("tp",))
    rank = mesh.get_rank()
    torch.manual_seed(0)
    model = Net()
    for i, block in enumerate(model.blocks):
        parallelize_module(block, mesh, {"in_proj": ColwiseParallel(), "out_proj": RowwiseParallel()})
        log(rank, f"block {i} is parallel")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
    for step in range(8):
        torch.manual_seed(step)
        inputs = torch.rand(8, 16)
        output = model(inputs)
        loss = output.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        log(rank, f"step {step} loss {loss.item():.4f}")
        if step % 3 == 2:
            score = evaluate(model, mesh, step)
            log(rank, f"score {score:.3f}")
    total = norms(model)
    dist.barrier()
    log(rank, f"done, norm {total:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
