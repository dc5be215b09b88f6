import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

EPOCHS = 2
BATCH = 8


class Digits(Dataset):
    def __init__(self, size, train):
        g = torch.Generator().manual_seed(1 if train else 2)
        self.images = torch.rand(size, 1, 12, 12, generator=g)
        self.labels = torch.randint(0, 10, (size,), generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index]
        image = (image - 0.13) / 0.31
        return image, self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc1 = nn.Linear(100, 16)
        self.fc2 = nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.norm(self.conv1(x)))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer, epoch, rank):
    model.train()
    for step, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if step % 2 == 0 and rank == 0:
            print(f"epoch {epoch} step {step} loss {loss.item():.4f}", flush=True)


def test(model, loader, rank):
    model.eval()
    totals = torch.zeros(2)
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            totals[0] += F.nll_loss(output, target, reduction="sum")
            totals[1] += len(data)
    dist.all_reduce(totals)
    if rank == 0:
        print(f"test loss {totals[0] / totals[1]:.4f}", flush=True)


def save(model, rank, path):
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()


def main():
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    world = dist.get_world_size()
    train_set = Digits(40 * world, True)
    test_set = Digits(16 * world, False)
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=BATCH, sampler=sampler, num_workers=1)
    test_loader = DataLoader(test_set, batch_size=BATCH, sampler=DistributedSampler(test_set, shuffle=False))
    model = DDP(Net())
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        train(model, train_loader, optimizer, epoch, rank)
        test(model, test_loader, rank)
        scheduler.step()
        save(model, rank, os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.pt"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
