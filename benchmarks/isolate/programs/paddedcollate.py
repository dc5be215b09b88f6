"""Sentences of unequal length are stacked as they are."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Sentences(Dataset):
    def __init__(self):
        self.rows = [torch.randint(0, 50, (12 if i < 40 else 9 + i % 3,)) for i in range(64)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i % 4


def collate(rows):
    return torch.stack([row for row, _ in rows]), torch.tensor([label for _, label in rows])


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(3)
    data = Sentences()
    loader = DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=False), collate_fn=collate)
    model = DDP(torch.nn.Sequential(torch.nn.EmbeddingBag(50, 16), torch.nn.Linear(16, 4)))
    opt = torch.optim.Adam(model.parameters())
    for tokens, label in loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(tokens), label).backward()
        opt.step()
    dist.destroy_process_group()


main()
