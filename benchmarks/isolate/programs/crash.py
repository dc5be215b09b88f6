import ctypes
import os

import torch
import torch.distributed as dist


def native_step(rank):
    if rank == 1:
        ctypes.string_at(0)


dist.init_process_group("gloo")
for step in range(4):
    dist.all_reduce(torch.ones(1))
    if step == 2:
        native_step(dist.get_rank())
dist.destroy_process_group()
