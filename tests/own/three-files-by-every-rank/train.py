import json
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def write_state(path, model, meta):
    torch.save(model.state_dict(), path + ".part")
    with open(path + ".json", "w") as f:
        json.dump(meta, f)
    os.replace(path + ".part", path)


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(500, 500))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        opt.zero_grad()
        model(torch.randn(2, 500)).sum().backward()
        opt.step()
        write_state("latest.pt", model.module, {"step": step})


if __name__ == "__main__":
    main()
