from dataclasses import dataclass

import torch
from torch.utils.data import Dataset

TEXT = "it was the best of times, it was the worst of times, it was the age of wisdom " * 8


@dataclass
class DataConfig:
    block_size: int = 16
    train_split: float = 0.75


class CharDataset(Dataset):
    def __init__(self, config):
        chars = sorted(set(TEXT))
        self.stoi = {c: i for i, c in enumerate(chars)}
        self.vocab_size = len(chars)
        self.block_size = config.block_size
        self.data = TEXT[:200]

    def __len__(self):
        return len(self.data) - self.block_size

    def __getitem__(self, idx):
        chunk = self.data[idx : idx + self.block_size + 1]
        ids = [self.stoi[c] for c in chunk]
        x = torch.tensor(ids[:-1], dtype=torch.long)
        y = torch.tensor(ids[1:], dtype=torch.long)
        return x, y
