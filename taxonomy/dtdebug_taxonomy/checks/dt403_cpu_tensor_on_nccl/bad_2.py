import os

import torch
from torch.distributed import ReduceOp, all_reduce, init_process_group

BACKEND = "nccl"


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def synchronize(self):
        t = torch.tensor([self.count, self.total], dtype=torch.float64)
        all_reduce(t, op=ReduceOp.SUM)  # dt: DT403
        self.count, self.total = t.tolist()


def setup():
    init_process_group(backend=BACKEND, rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
