import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def save_checkpoint(model, optimizer, step, folder):
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    tmp = os.path.join(folder, "last.pt.tmp")
    torch.save(state, tmp)
    os.rename(tmp, os.path.join(folder, "last.pt"))


def main():
    dist.init_process_group("gloo")
    os.makedirs("ckpt", exist_ok=True)
    model = DDP(nn.Linear(600, 600))
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(30):
        optimizer.zero_grad()
        model(torch.randn(4, 600)).sum().backward()
        optimizer.step()
        save_checkpoint(model, optimizer, step, "ckpt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
