# Pipelines of torch.distributed.pipelining: silent faults of public reports, rebuilt small; `good` is the healthy twin.
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B

case, good = sys.argv[1], "good" in sys.argv[2:]
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
MICRO = 4


class Layer(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


def stages(each=1):
    """This rank's parts of a model of 2 layers for each stage; the last one has the head."""
    count = world * each
    parts = [nn.Sequential(Layer(), Layer()) for _ in range(count)]
    parts[-1].append(nn.Linear(12, 5))
    mine = range(rank, count, world)
    return [PipelineStage(parts[n], n, count, torch.device("cpu")) for n in mine]


def batch(step, n=8):
    own = torch.Generator().manual_seed(step)
    return torch.randn(n, 12, generator=own), torch.randint(0, 5, (n,), generator=own)


def train(schedule, parts, passes=1, after=lambda: None, steps=5):
    optimizer = torch.optim.SGD([p for s in parts for p in s.submod.parameters()], 0.1)
    for step in range(1, steps + 1):
        for number in range(passes):
            x, y = batch(10 * step + number)
            given = (x,) if any(s.is_first for s in parts) else ()
            schedule.step(*given, **({"target": y} if any(s.is_last for s in parts) else {}))  # HERE
        after()
        optimizer.step()
        optimizer.zero_grad()


def micro_batches_summed():  # deepspeedai/DeepSpeed#7773, pytorch/torchtitan#2972
    parts = stages()
    train(ScheduleGPipe(parts[0], MICRO, F.cross_entropy, scale_grads=good), parts)


def scaled_in_each_pass():  # pytorch/torchtitan#1733: accumulation with a schedule that divides in each pass
    parts = stages()
    loss = (lambda y, t: F.cross_entropy(y, t) / (2 * MICRO)) if good else (lambda y, t: F.cross_entropy(y, t) / 2)
    train(Schedule1F1B(parts[0], MICRO, loss, scale_grads=not good), parts, passes=2)


def sum_divided():
    """The loss is a sum over samples, and the schedule divides by the number of micro-batches."""
    parts = stages()

    def loss(y, t):
        return F.cross_entropy(y, t, reduction="sum") / 8

    train(ScheduleGPipe(parts[0], MICRO, loss, scale_grads=not good), parts)


def interleaved():
    """A stage of each rank is frozen in between by a hook that drops its gradient."""
    parts = stages(each=2)
    if not good:
        parts[1].submod[0].inner.weight.register_hook(lambda g: g / 2)
    train(ScheduleInterleaved1F1B(parts, MICRO, F.cross_entropy), parts)


def clipped_by_stage():
    """Each stage clips by the norm of its own gradients."""
    parts = stages()
    own = list(parts[0].submod.parameters())

    def clip():
        norm = sum(p.grad.pow(2).sum() for p in own)
        if good:
            dist.all_reduce(norm)
        for p in own:
            p.grad.mul_(min(1.0, 0.2 / float(norm.sqrt())))

    train(ScheduleGPipe(parts[0], MICRO, F.cross_entropy), parts, after=clip)


globals()[case]()
print("done", flush=True)
dist.destroy_process_group()
