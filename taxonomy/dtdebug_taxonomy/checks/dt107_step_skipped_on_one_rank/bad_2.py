import math

import torch
from accelerate import Accelerator


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.accelerator = Accelerator()
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)

    def epoch(self):
        for step, batch in enumerate(self.loader):
            if batch is None:  # dt: DT107
                continue
            loss = self.model(**batch).loss
            value = loss.item()
            finite = math.isfinite(value)
            if finite:  # dt: DT107
                self.accelerator.backward(loss)
                self.optimizer.step()
            self.optimizer.zero_grad()
