import os
import time

import torch
from torch import distributed as dist


class Trainer:
    def __init__(self):
        dist.init_process_group("gloo")
        self.rank = dist.get_rank()
        self.weights = torch.zeros(16)

    def step(self, number):
        gradient = torch.full((16,), float(number + self.rank))
        dist.all_reduce(gradient)
        self.weights -= 0.01 * gradient

    def evaluate(self):
        score = self.weights.abs().sum()
        dist.all_reduce(score)
        return score.item() / dist.get_world_size()

    def fit(self, steps):
        for number in range(steps):
            self.step(number)
            if number % 3 == 2 and self.rank == 0:
                print("score", self.evaluate(), flush=True)


trainer = Trainer()
trainer.fit(9)
dist.barrier()
dist.destroy_process_group()
