"""A trainer in one class."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, rate):
        self.model = DDP(model)
        self.rate = rate
        self.optimizer = None
        self.scheduler = None
        self.losses = []

    def build_optimizer(self):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.rate, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=2)

    def data(self, steps):
        for number in range(steps):
            generator = torch.Generator().manual_seed(100 * dist.get_rank() + number)
            yield torch.randn(8, 4, generator=generator)

    def step(self, batch):
        loss = self.model(batch).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss.item()

    def fit(self, steps):
        for batch in self.data(steps):
            self.losses.append(self.step(batch))
        return sum(self.losses) / len(self.losses)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), rate=0.1)
    mean = trainer.fit(steps=6)
    if dist.get_rank() == 0:
        print("mean loss", mean)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
