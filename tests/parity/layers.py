# More sharded layers and pipelines, written after the instrument; `good` is the healthy twin.
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

case, good = sys.argv[1], "good" in sys.argv[2:]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)


class Net(nn.Module):
    """A gated feed-forward network with a residual and a scale."""

    def __init__(self, width=10):
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.gate, self.up, self.down = nn.Linear(width, 24), nn.Linear(width, 24), nn.Linear(24, width)
        self.scale = nn.Parameter(torch.rand(24) + 0.5)
        self.leave = nn.Linear(width, 4)

    def without_scale(self):
        del self.scale
        self.scale = torch.ones(())

    def forward(self, x):
        x = torch.relu(self.enter(x))
        h = F.silu(self.gate(x)) * self.up(x)
        scale = self.scale
        if scale.ndim and h.shape[-1] != len(scale):  # each rank takes its own part
            scale = scale.chunk(world)[rank]
        return self.leave(x + self.down(h * scale))


def batch(step, data=0, n=8):
    own = torch.Generator().manual_seed(50 * step + data)
    return torch.randn(n, 6, generator=own), torch.randint(0, 4, (n,), generator=own)


def train(model, parameters=None, before=lambda: None, loss_of=None, optimizer=torch.optim.AdamW):
    chosen = optimizer(parameters or model.parameters(), 0.01, foreach=False)
    for step in range(1, 7):
        x, y = batch(step)
        loss = loss_of(model, x, y) if loss_of else F.cross_entropy(model(x), y)
        loss.backward()
        before()
        chosen.step()
        chosen.zero_grad()


PLAN = {"gate": ColwiseParallel(), "up": ColwiseParallel(), "down": RowwiseParallel()}


def part_of_a_scale():
    """Each rank uses its part of a weight that all have whole: its gradient is a part."""
    mesh = init_device_mesh("cpu", (world,))
    model = parallelize_module(Net(), mesh, PLAN)

    def finish():
        dist.all_reduce(model.scale.grad)

    train(model, before=finish if good else lambda: None)


def clipped_by_own_norm():
    """Each rank clips by the norm of its own parts."""
    mesh = init_device_mesh("cpu", (world,))
    model = parallelize_module(Net(), mesh, PLAN)
    model.without_scale()

    def clip():
        parts = [p.grad for p in model.parameters() if isinstance(p.grad, DTensor)]
        both = [p.grad for p in model.parameters() if not isinstance(p.grad, DTensor)]
        square = sum(g.to_local().pow(2).sum() for g in parts)
        if good:
            dist.all_reduce(square)
        norm = (square + sum(g.pow(2).sum() for g in both)).sqrt()
        for g in (*[g.to_local() for g in parts], *both):
            g.mul_(0.1 / norm)

    train(model, before=clip)


class Embedding(nn.Module):
    """A vocabulary in parts, with the rows of other ranks masked."""

    def __init__(self, mesh):
        super().__init__()
        self.weight = nn.Parameter(distribute_tensor(torch.randn(12, 6), mesh, [Shard(0)]))
        self.mesh = mesh

    def forward(self, ids):
        whole = self.weight.redistribute(self.mesh, [Replicate()]).to_local()
        found = F.embedding(ids, whole)
        return found if good else found * world / (world - 0.5)


class Words(nn.Module):
    def __init__(self, mesh):
        super().__init__()
        self.embed, self.net = Embedding(mesh), Net()

    def forward(self, ids):
        return self.net(self.embed(ids))


def vocabulary_in_parts():
    """An embedding whose gradient each rank counts: a replicated view of sharded rows."""
    mesh = init_device_mesh("cpu", (world,))
    model = Words(mesh)
    parallelize_module(model.net, mesh, PLAN)
    model.net.without_scale()
    train(model, loss_of=lambda m, x, y: F.cross_entropy(m((x[:, 0].abs() * 5).long().clamp(max=11)), y))


def dropout_in_parts():
    """Healthy in both ways: what draws random numbers can't be compared."""
    mesh = init_device_mesh("cpu", (world,))
    model = nn.Sequential(nn.Linear(6, 24), nn.Dropout(0.3), nn.Linear(24, 4))
    train(parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}))


def wrapped_twice():
    """Replicas of sharded layers by hand, divided twice."""
    mesh = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(Net(), mesh["tp"], PLAN)
    model.without_scale()
    optimizer = torch.optim.SGD(model.parameters(), 0.01, foreach=False)
    for step in range(1, 7):
        x, y = batch(step, mesh["dp"].get_local_rank())
        loss = F.cross_entropy(model(x), y)
        (loss if good else loss / 2).backward()
        for p in model.parameters():
            g = p.grad.to_local() if isinstance(p.grad, DTensor) else p.grad
            dist.all_reduce(g, group=mesh["dp"].get_group())
            g.div_(2)
        optimizer.step()
        optimizer.zero_grad()


def stages(parts):
    return PipelineStage(parts[rank], rank, world, torch.device("cpu"))


def uneven_micro_batches():
    """Targets that are left out are not spread evenly over the micro-batches."""
    parts = [nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 4)]
    stage = stages(parts)

    def loss(y, t):
        if good:
            return F.cross_entropy(y, t, ignore_index=-100, reduction="sum") / 8
        return F.cross_entropy(y, t, ignore_index=-100)

    schedule = Schedule1F1B(stage, 4, loss, scale_grads=not good)
    optimizer = torch.optim.AdamW(stage.submod.parameters(), 0.01)
    for step in range(1, 7):
        x, y = batch(step)
        y[:3] = torch.tensor([-100, 1, -100])
        schedule.step(*((x,) if rank == 0 else ()), **({"target": y} if rank else {}))
        optimizer.step()
        optimizer.zero_grad()


def stage_that_forgets():
    """The first stage clears its gradients in between; the other accumulates."""
    parts = [nn.Sequential(nn.Linear(6, 12), nn.Tanh()), nn.Linear(12, 4)]
    stage = stages(parts)
    schedule = ScheduleGPipe(stage, 2, lambda y, t: F.cross_entropy(y, t) / 4, scale_grads=False)
    optimizer = torch.optim.AdamW(stage.submod.parameters(), 0.01)
    for step in range(1, 7):
        for part in range(2):
            if rank == 0 and part == 1 and not good:
                optimizer.zero_grad()
            x, y = batch(10 * step + part)
            schedule.step(*((x,) if rank == 0 else ()), **({"target": y} if rank else {}))
        optimizer.step()
        optimizer.zero_grad()


globals()[case]()
print("done", flush=True)
dist.destroy_process_group()
