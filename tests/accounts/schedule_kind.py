"""Choose the schedule by name."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, StepLR

SETTINGS = {"schedule": "warmup_linear", "steps": 6, "rate": 0.1, "warmup": 2}


def make_schedule(optimizer, settings):
    kind = settings["schedule"]
    if kind == "cosine":
        return CosineAnnealingLR(optimizer, settings["steps"])
    if kind == "step":
        return StepLR(optimizer, step_size=settings["steps"] // 2)
    if kind == "linear_warmup":
        warmup = settings["warmup"]
        return LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / warmup))


def make_parts(settings):
    model = DDP(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=settings["rate"])
    return model, optimizer, make_schedule(optimizer, settings)


def train(settings):
    model, optimizer, schedule = make_parts(settings)
    for _ in range(settings["steps"]):
        loss = model(torch.randn(4, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return schedule.get_last_lr()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    rates = train(SETTINGS)
    if dist.get_rank() == 0:
        print("last rate", rates)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
