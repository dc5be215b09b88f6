import os

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

RANK = int(os.getenv("RANK", -1))


def train(net, loader, stopper, epochs):
    model = DDP(net)
    for epoch in range(epochs):
        for images, targets in loader:
            model(images, targets).backward()
            optimizer.step()
        if RANK in {-1, 0}:
            fitness = validate(model.module)
            if stopper(epoch, fitness):
                break  # dt: DT117
    dist.destroy_process_group()
