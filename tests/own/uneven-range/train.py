import argparse
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def my_indices(n, rank, world_size):
    return list(range(rank, n, world_size))


def run(args):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    data = torch.randn(args.samples, 4)
    model = DDP(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for i in my_indices(len(data), rank, world_size):
            opt.zero_grad()
            model(data[i : i + 1]).sum().backward()
            opt.step()
        if rank == 0:
            print("epoch", epoch, "of", args.samples, "samples: %d steps" % len(data))
        dist.barrier()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=13)
    dist.init_process_group("gloo")
    run(parser.parse_args())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
