from concurrent.futures import ThreadPoolExecutor

import torch.distributed as dist

pool = ThreadPoolExecutor(1)


def sync(counts):
    dist.all_gather_object(parts, counts)


def step(x):
    pool.submit(sync, x)  # dt: DT413
    dist.all_reduce(x)
