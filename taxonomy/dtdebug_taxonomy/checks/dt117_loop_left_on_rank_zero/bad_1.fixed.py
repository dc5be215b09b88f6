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
        stop = [False]
        if RANK in {-1, 0}:
            fitness = validate(model.module)
            if stopper(epoch, fitness):
                stop[0] = True  # dt: DT117
        dist.broadcast_object_list(stop, src=0)
        if stop[0]:
            break
    dist.destroy_process_group()
