import torch
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, optimizer, local_rank):
        self.model = DDP(model, device_ids=[local_rank])
        self.optimizer = optimizer

    def train_step(self, batch):
        """All ranks run the backward pass, whichever way."""
        loss = self.model(batch)["loss"]
        if torch.isfinite(loss):
            loss.backward()
        else:
            (0.0 * sum(p.sum() for p in self.model.parameters())).backward()
        self.optimizer.step()

    def checked_step(self, batch):
        loss = self.model(batch)["loss"]
        if torch.isfinite(loss):
            loss.backward()
        else:
            raise FloatingPointError("the loss is not finite")
        if torch.isfinite(loss):
            self.optimizer.step()

    def plain_step(self, batch):
        """For one process: several take the twin."""
        loss = self.model.module(batch)["loss"]
        if torch.isfinite(loss):
            loss.backward()
            self.optimizer.step()

    def plain_step_ddp(self, batch):
        self.model(batch)["loss"].backward()
        self.optimizer.step()
