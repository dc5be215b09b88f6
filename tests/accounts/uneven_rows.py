import random

import torch
from torch.utils.data import DataLoader, Dataset


class Sequences(Dataset):
    def __init__(self, count):
        rng = random.Random(0)
        self.rows = [[rng.randrange(9) for _ in range(rng.randrange(3, 8))] for _ in range(count)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.tensor(self.rows[i])


def loader(batch):
    return DataLoader(Sequences(20), batch_size=batch, num_workers=2)


total = 0
for rows in loader(4):
    total += rows.sum().item()
print(total)
