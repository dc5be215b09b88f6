import math
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def batches(rank, n=8):
    g = torch.Generator().manual_seed(rank)
    for i in range(n):
        x = torch.randn(4, 3, generator=g)
        if rank == 1 and i == 3:
            x = x * float("inf")
        yield x


def train(model, opt, rank):
    for step, x in enumerate(batches(rank)):
        loss = model(x).pow(2).mean()
        if not math.isfinite(loss.item()):
            print(f"rank {rank}: bad loss at {step}")
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()


def main():
    dist.init_process_group("gloo")
    model = DDP(nn.Linear(3, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        train(model, opt, dist.get_rank())
        dist.barrier()


if __name__ == "__main__":
    main()
