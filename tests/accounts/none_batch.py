import torch
from torch.utils.data import DataLoader, Dataset


class Lines(Dataset):
    def __init__(self, lines, shortest):
        self.lines = lines
        self.shortest = shortest

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        line = self.lines[i]
        if len(line) < self.shortest:
            return None
        return torch.tensor([ord(c) for c in line[: self.shortest]])


lines = ["alpha beta", "gamma", "delta epsilon", "zeta eta theta"]
loader = DataLoader(Lines(lines, shortest=8), batch_size=2)
for batch in loader:
    print(batch.shape)
