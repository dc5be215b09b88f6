from itertools import repeat

import torch
from torch.distributed import distributed_c10d as c10d


class Memory:
    def __init__(self, width, world_size):
        self.slots = [torch.zeros(width)] * world_size  # dt: DT401

    def fill(self, x):
        c10d.all_gather(self.slots, x)


def fill(out, x):
    c10d.all_gather(out, x)


def collect(x, n):
    rows, row = [], torch.zeros_like(x)
    for _ in range(n):
        rows.append(row)  # dt: DT401
    c10d.all_gather(rows, x)
    again = list(repeat(torch.empty_like(x), n))  # dt: DT401
    c10d.all_gather(again, x)
    shared = [torch.zeros_like(x)] * n  # dt: DT401
    fill(shared, x)
