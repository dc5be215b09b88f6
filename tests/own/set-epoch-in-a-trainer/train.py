import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Trainer:
    def __init__(self, model, dataset, batch_size):
        self.model = DDP(model)
        self.sampler = DistributedSampler(dataset)
        self.loader = DataLoader(dataset, batch_size=batch_size, sampler=self.sampler)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def _run_epoch(self, epoch):
        for x, y in self.loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def train(self, epochs):
        for epoch in range(epochs):
            self._run_epoch(epoch)


def main():
    dist.init_process_group("gloo")
    dataset = TensorDataset(torch.randn(40, 3), torch.randn(40, 1))
    Trainer(nn.Linear(3, 1), dataset, 4).train(3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
