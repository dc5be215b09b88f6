"""Rank 0 builds the index of the data set, the others wait for it."""

import time
from datetime import timedelta

import torch.distributed as dist


def tokenize_dataset() -> None:
    time.sleep(12)


dist.init_process_group("gloo", timeout=timedelta(minutes=5))
if dist.get_rank() == 0:
    tokenize_dataset()
dist.barrier()
if dist.get_rank() == 0:
    print("all ranks have the index", flush=True)
dist.destroy_process_group()
