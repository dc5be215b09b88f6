import os
import time

import torch.distributed as dist


def wait_for(path, limit):
    end = time.time() + limit
    while time.time() < end:
        if os.path.exists(path):
            return True
        time.sleep(1)
    return False


def timed(steps, tensor):
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        dist.all_reduce(tensor)
        taken = time.perf_counter() - begin
        if taken > 1.0:
            print("slow", taken)
        times.append(taken)
    return times
