import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def distribute(model, local_rank):
    return DistributedDataParallel(model, device_ids=[local_rank]) if dist.is_initialized() else model


def evaluate(model, loader):
    with torch.no_grad():
        return sum(model(x).item() for x in loader) / len(loader)


def train(model, loader, held_out):
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    model = distribute(model.cuda(), local_rank)
    for x in loader:
        model(x).mean().backward()
    if dist.get_rank() == 0:
        print(evaluate(getattr(model, "module", model), held_out))  # dt: DT109
    dist.destroy_process_group()
