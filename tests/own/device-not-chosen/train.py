import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup():
    dist.init_process_group(backend="nccl")
    return int(os.environ["LOCAL_RANK"])


def build_model(width=128):
    return nn.Sequential(nn.Linear(32, width), nn.GELU(), nn.Linear(width, 10)).cuda()


def main():
    local_rank = setup()
    model = DDP(build_model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(100):
        loss = model(torch.randn(8, 32).cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank on device {local_rank} is done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
