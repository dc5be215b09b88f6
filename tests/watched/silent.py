# One model after another, each with another fault that prints nothing; the ranks part in places that are known.
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
one = rank == 1


def train(model, optimizer, batches, skip=None, clear=True, forward=None, pause=0.0):
    for i, x in enumerate(batches):
        if clear:
            optimizer.zero_grad()
        (forward or model)(x).pow(2).mean().backward()  # BACKWARD
        if not (one and i == skip):
            optimizer.step()  # STEP
        time.sleep(pause)


def made():
    torch.manual_seed(5)
    model = DistributedDataParallel(nn.Linear(4, 4))
    torch.manual_seed(50 + rank)
    return model


def batches(n=8):
    return [torch.randn(8, 4) for _ in range(n)]


match sys.argv[1]:
    case "rate":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.2 if one else 0.1), batches())
    case "slowly":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.2 if one else 0.1), batches(), pause=1.0)
        print("TRAINED", file=sys.stderr, flush=True)
    case "skipped":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.1), batches(), skip=4)
    case "inner":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.1), batches(), forward=model.module)
    case "kept":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.1), batches(), clear=False)
    case "same":
        model = made()
        data = TensorDataset(torch.randn(64, 4, generator=torch.Generator().manual_seed(1)))
        torch.manual_seed(7)
        loader = DataLoader(data, 8, shuffle=True)  # LOADER
        train(model, torch.optim.SGD(model.parameters(), 0.1), (x for (x,) in loader))
    case "async":
        model = made()
        train(model, torch.optim.SGD(model.parameters(), 0.1), batches())
        sums = torch.ones(4)
        dist.all_reduce(sums, async_op=True)  # DROPPED
        time.sleep(1)
        dist.barrier()
dist.destroy_process_group()
