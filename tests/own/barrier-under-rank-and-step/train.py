import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--save-every", type=int, default=10)
    p.add_argument("--out", default="ckpt")
    return p.parse_args()


def run(args):
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(8, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    os.makedirs(args.out, exist_ok=True)
    for step in range(args.steps):
        x = torch.randn(4, 8)
        loss = model(x).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        if rank == 0 and step % args.save_every == args.save_every - 1:
            path = os.path.join(args.out, f"step{step}.pt")
            torch.save(model.module.state_dict(), path)
            dist.barrier()
            print("saved", path)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    run(get_args())
    dist.destroy_process_group()
