"""Train on shards with a sampler of each epoch."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler


class Waves(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(4)
        self.x = torch.rand(size, 6, generator=generator)
        self.y = torch.sin(self.x.sum(1, keepdim=True))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


CONFIG = {"epochs": 2, "batch_size": 8, "data": {"size": 64, "shard": False}}


def make_loader(config):
    data = Waves(config["data"]["size"])
    if config["data"]["shard"]:
        sampler = DistributedSampler(data)
    else:
        sampler = RandomSampler(data)
    return DataLoader(data, batch_size=config["batch_size"], sampler=sampler)


def train(model, loader, epochs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for features, target in loader:
            loss = nn.functional.mse_loss(model(features), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1)))
    print("last loss", train(model, make_loader(CONFIG), CONFIG["epochs"]))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
