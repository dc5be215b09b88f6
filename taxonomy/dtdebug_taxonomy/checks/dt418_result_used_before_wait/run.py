"""Divides a sum before the asynchronous all_reduce is over, and after it."""

import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
means = []
for waits in (False, True):
    total = torch.tensor([2.0 + 2.0 * rank])
    dist.barrier()
    time.sleep(1.5 * rank)
    work = dist.all_reduce(total, async_op=True)
    if waits:
        work.wait()
    total /= 2
    work.wait()
    means.append(total.item())
if rank == 0:
    print("before wait", means[0] != 3.0, "after wait", means[1], flush=True)
dist.destroy_process_group()
