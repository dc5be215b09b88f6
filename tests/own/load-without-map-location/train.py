import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def resume(model, optimizer, path):
    checkpoint = torch.load(path)
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint["epoch"] + 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", default="last.pt")
    args = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DDP(nn.Linear(10, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters())
    start = resume(model.module, optimizer, args.resume)
    for epoch in range(start, 10):
        model(torch.randn(4, 10).cuda()).sum().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
