import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler

NAMES = {"cat": 0, "dog": 1, "bird": 2}


class Animals(Dataset):
    def __init__(self, n):
        self.rows = [("cat", "dog", "bird")[i % 3] for i in range(n)]
        self.rows[n // 2 + 1] = self.rows[n // 2 + 2] = self.rows[n // 2 + 3] = "fish"

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.full((8,), float(i)), NAMES[self.rows[i]]


def train(args):
    dist.init_process_group(backend="gloo")
    rank = int(os.environ["RANK"])
    data = Animals(64)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=args.batch_size, sampler=sampler)
    model = DDP(torch.nn.Linear(8, 3))
    opt = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(model(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            print(f"epoch {epoch} loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-4)
    p.add_argument("--epochs", type=int, default=1)
    train(p.parse_args())
