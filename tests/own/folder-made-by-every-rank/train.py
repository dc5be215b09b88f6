import os
import shutil

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def rotate(folder, keep=1):
    steps = sorted(int(n.split("-")[1]) for n in os.listdir(folder) if n.startswith("step-"))
    for step in steps[:-keep]:
        shutil.rmtree(os.path.join(folder, f"step-{step}"))


def save(model, step, folder):
    target = os.path.join(folder, f"step-{step}")
    os.makedirs(target)
    torch.save(model.state_dict(), os.path.join(target, "model.pt"))
    rotate(folder)


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(100, 100))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    os.makedirs("runs", exist_ok=True)
    for step in range(20):
        opt.zero_grad()
        model(torch.randn(4, 100)).mean().backward()
        opt.step()
        save(model.module, step, "runs")


if __name__ == "__main__":
    main()
