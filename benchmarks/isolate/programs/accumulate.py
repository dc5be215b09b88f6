import argparse
import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as Wrapped


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--grad-accum", type=int, default=3)
    p.add_argument("--epochs", type=int, default=1)
    return p.parse_args()


def epoch(net, opt, accum, batches=7):
    pending = 0
    for i in range(batches):
        last = (i + 1) % accum == 0
        with contextlib.nullcontext() if last else net.no_sync():
            net(torch.randn(2, 5)).sum().backward()
        pending += 1
        if last:
            opt.step()
            opt.zero_grad()
            pending = 0
    if pending:
        raise RuntimeError(f"{pending} batches were accumulated and never applied")


if __name__ == "__main__":
    chosen = options()
    dist.init_process_group("gloo")
    network = Wrapped(torch.nn.Linear(5, 5))
    optimizer = torch.optim.SGD(network.parameters(), 0.1)
    for _ in range(chosen.epochs):
        epoch(network, optimizer, chosen.grad_accum)
    dist.destroy_process_group()
