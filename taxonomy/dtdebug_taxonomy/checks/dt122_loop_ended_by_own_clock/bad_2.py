import time

import torch
from torch.nn.parallel import DistributedDataParallel


def train(model, loader, optimizer, budget):
    model = DistributedDataParallel(model)
    start = time.monotonic()
    for batch in loader:
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        elapsed = time.monotonic() - start
        if elapsed > budget:  # dt: DT122
            break
    torch.save(model.state_dict(), "last.pt")
