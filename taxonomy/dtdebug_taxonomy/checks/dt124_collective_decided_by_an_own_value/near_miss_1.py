import os
import time

import torch.distributed as dist


def resume(path, model):
    if os.path.exists(path):
        print("resumed")
    dist.barrier()


def wait(path):
    """Nobody waits in a collective for a rank that waits for the file."""
    while not os.path.exists(path):
        time.sleep(1)
    dist.barrier()


def both(loss):
    if loss.item() > 1:
        dist.all_reduce(loss)
    else:
        dist.all_reduce(loss)


def started(host=os.uname().nodename):
    if dist.is_initialized():
        dist.barrier()
