from contextlib import nullcontext

import torch


class Trainer:
    def __init__(self, model, scaler, every):
        self.model = torch.nn.parallel.DistributedDataParallel(model)
        self.scaler, self.every = scaler, every

    def train_step(self, batch, index):
        losses = self.model(batch)
        loss = sum(losses.values()) / self.every
        context = nullcontext() if (index + 1) % self.every == 0 else self.model.no_sync()
        with context:  # dt: DT314
            self.scaler.scale(loss).backward()
        return loss.item()
