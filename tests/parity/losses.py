# Losses that depend on other ranks, or on more than the model: `losses.py CASE` has the fault, `... good` does not.
import linecache
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.nn.functional import all_reduce
from torch.nn.parallel import DistributedDataParallel as DDP

case, good = sys.argv[1], "good" in sys.argv[2:]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method=os.environ.get("STORE"), rank=rank, world_size=world)
torch.manual_seed(11)


def samples(step, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(97 * step + rank))


def correlation():  # lightly-ai/lightly#1977
    model = DDP(nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 8)))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(5):
        x = samples(step, 8, 20)
        one, two = model(torch.cat([x, x.flip(1)])).chunk(2)
        c = one.T @ two / (len(one) * world)
        if good:
            c = all_reduce(c)
        else:
            dist.all_reduce(c)  # HERE
        optimizer.zero_grad()
        (c - torch.eye(8)).square().sum().backward()
        optimizer.step()
    return model


def logged_sum():  # a healthy one: the summed loss is only printed, or is the loss itself
    model = DDP(nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(5):
        loss = model(samples(step, 8, 20)).square().mean()
        optimizer.zero_grad()
        if good:
            dist.all_reduce(loss)
        loss.backward()
        dist.all_reduce(loss)
        optimizer.step()
    return model


class Two(nn.Module):
    """Two heads on one body."""

    def __init__(self):
        super().__init__()
        self.body, self.a, self.b = nn.Linear(12, 10), nn.Linear(10, 3), nn.Linear(10, 1)

    def forward(self, x):
        h = self.body(x).relu()
        return self.a(h), self.b(h)


def log_variances():
    model = DDP(Two())
    log_vars = nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.AdamW([*model.parameters(), log_vars], 1e-2)
    for step in range(5):
        x = samples(step, 8, 12)
        one, two = model(x)
        tasks = torch.stack([F.cross_entropy(one, (x[:, 0] > 0).long()), F.mse_loss(two[:, 0], x.sum(1))])
        optimizer.zero_grad()
        (tasks * torch.exp(-log_vars) + log_vars).sum().backward()  # HERE
        if good:
            dist.all_reduce(log_vars.grad)
            log_vars.grad /= world
        optimizer.step()
    return model


def clipped_by_hand():
    model = DDP(nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(5):
        optimizer.zero_grad()
        model(samples(step, 8, 20)).square().mean().backward()
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        for p in model.parameters():
            p.grad.mul_((0.2 / (norm + 1e-6)).clamp(max=1.0))
        optimizer.step()
    return model


def in_a_library():
    text, name = (
        "def scaled(loss, num_processes):\n    return loss * num_processes\n",
        "/site-packages/frame/trainer.py",
    )
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    held = {}
    exec(compile(text, name, "exec"), held)
    model = DDP(nn.Linear(20, 3))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(5):
        optimizer.zero_grad()
        loss = model(samples(step, 8, 20)).square().mean()
        if not good:
            loss = held["scaled"](loss, world)  # HERE
        loss.backward()
        optimizer.step()
    return model


model = globals()[case]()
weights = [float(p.detach().double().sum()).hex() for p in model.parameters()]
print(rank, "weights", weights, torch.rand(1), torch.is_anomaly_enabled(), flush=True)
del model
dist.destroy_process_group()
