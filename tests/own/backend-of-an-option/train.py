import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def init(args):
    dist.init_process_group(backend=args.backend)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="nccl")
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    init(args)
    device = torch.device("cuda")
    model = nn.Linear(10, 10).to(device)
    model = DDP(model)
    for _ in range(args.steps):
        model(torch.randn(3, 10, device=device)).sum().backward()


if __name__ == "__main__":
    main()
