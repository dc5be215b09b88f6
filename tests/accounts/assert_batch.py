import os

import torch
import torch.distributed as dist


class Batcher:
    total: int = 30

    def __init__(self, world):
        self.world = world

    def per_rank(self, accumulate):
        parts = self.world * accumulate
        assert self.total % parts == 0, "the batch can't be shared"
        return self.total // parts


dist.init_process_group("gloo")
accumulate = int(os.getenv("ACCUMULATE", "4"))
print(Batcher(dist.get_world_size()).per_rank(accumulate))
