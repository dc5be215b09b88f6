import torch
from torch.distributed.fsdp import FullyShardedDataParallel


class Trainer:
    def __init__(self, model):
        self.model = FullyShardedDataParallel(model)

    def step(self, batch):
        try:
            self.model(batch).mean().backward()
        except (torch.cuda.OutOfMemoryError, ValueError):  # dt: DT108
            return None
        self.optimizer.step()
