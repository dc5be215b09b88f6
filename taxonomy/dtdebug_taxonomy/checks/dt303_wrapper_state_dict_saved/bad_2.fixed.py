import torch
from torch import nn


class Trainer:
    def __init__(self, model, optimizer, rank):
        self.model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
        self.optimizer, self.rank = optimizer, rank

    def save(self, path, epoch):
        if self.rank != 0:
            return
        state = {
            "epoch": epoch,
            "model": self.model.module.state_dict(),  # dt: DT303
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(state, path)
