"""A trainer that keeps the losses of an epoch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, steps):
        self.model = DDP(model)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.steps = steps
        self.losses = []

    def start_epoch(self, epoch):
        torch.manual_seed(1000 * epoch + dist.get_rank())
        self.losses = 0.0

    def train_step(self):
        loss = self.model(torch.randn(8, 6)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def average(self):
        total = torch.tensor(sum(self.losses))
        dist.all_reduce(total)
        return total.item() / (len(self.losses) * dist.get_world_size())

    def fit(self, epochs):
        for epoch in range(epochs):
            self.start_epoch(epoch)
            for _ in range(self.steps):
                self.train_step()
            if dist.get_rank() == 0:
                print("epoch", epoch)
        return self.average()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    trainer = Trainer(nn.Linear(6, 1), steps=3)
    print("average", trainer.fit(epochs=2))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
