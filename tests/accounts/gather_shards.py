"""Collect validation scores of all ranks."""

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class ScoreBook:
    """Scores of one rank, gathered at the end of an epoch."""

    def __init__(self, batches, batch_size):
        self.capacity = batches * batch_size
        self.total = torch.empty(self.capacity)
        self.rows = []

    def add(self, scores):
        self.rows.append(scores.detach())

    def gather(self):
        mine = torch.cat(self.rows)
        dist.all_gather_into_tensor(self.total, mine)
        return self.total


def validate(model, loader, batch_size):
    book = ScoreBook(len(loader), batch_size)
    model.eval()
    with torch.no_grad():
        for features, _ in loader:
            book.add(model(features).squeeze(1))
    return book.gather()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--samples", type=int, default=64)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(args.samples, 12), torch.zeros(args.samples))
    loader = DataLoader(data, batch_size=args.batch_size, sampler=DistributedSampler(data, shuffle=False))
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
    scores = validate(model, loader, args.batch_size)
    if dist.get_rank() == 0:
        print("mean score", scores.mean().item(), scores.numel())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
