"""Reads a tensor right after an asynchronous all_reduce, and again after wait()."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.tensor([1.0 + rank])
dist.barrier()
time.sleep(1.5 * rank)
work = dist.all_reduce(x, async_op=True)
first = x.item()
work.wait()
if rank == 0:
    print("at once", first, "after wait", x.item(), flush=True)
dist.destroy_process_group()
