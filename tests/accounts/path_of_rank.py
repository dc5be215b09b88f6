import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

FOLDER = os.path.join(tempfile.gettempdir(), "toy-" + os.environ["MASTER_PORT"])


def checkpoint_path(rank):
    return os.path.join(FOLDER, f"model-{rank}.pt")


def save(model, rank):
    if rank == 0:
        torch.save(model.state_dict(), checkpoint_path(rank))


def demo():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    os.makedirs(FOLDER, exist_ok=True)
    model = DDP(nn.Linear(4, 4))
    save(model, rank)
    dist.barrier()
    model.load_state_dict(torch.load(checkpoint_path(rank), weights_only=True))
    model(torch.randn(2, 4)).sum().backward()


if __name__ == "__main__":
    demo()
