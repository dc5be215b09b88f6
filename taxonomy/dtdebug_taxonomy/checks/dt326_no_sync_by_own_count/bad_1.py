import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def train(loader, net, budget):
    dist.init_process_group("gloo")
    model = DDP(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    tokens = 0
    for batch in loader:
        tokens += len(batch)
        full = tokens >= budget
        with contextlib.nullcontext() if full else model.no_sync():  # dt: DT326
            model(batch).mean().backward()
        if full:
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0
