import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from torch import nn


@dataclass
class Settings:
    batch: int = 4
    global_batch: int = field(default_factory=lambda: int(os.environ.get("GLOBAL_BATCH", "4")))

    def accumulation(self, world):
        return self.global_batch // (self.batch * world)


class Loop:
    def __init__(self, settings):
        self.settings = settings
        self.model = nn.parallel.DistributedDataParallel(nn.Linear(3, 1))
        self.every = settings.accumulation(dist.get_world_size())

    def run(self):
        for step in range(8):
            self.model(torch.randn(self.settings.batch, 3)).sum().backward()
            if (step + 1) % self.every == 0:
                self.model.zero_grad()


dist.init_process_group("gloo")
Loop(Settings()).run()
