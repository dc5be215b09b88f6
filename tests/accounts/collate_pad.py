import torch
from torch.utils.data import DataLoader

MAX_LENGTH = 6


def pad(batch):
    out = torch.zeros(len(batch), MAX_LENGTH, dtype=torch.long)
    for row, tokens in enumerate(batch):
        out[row, : len(tokens)] = torch.tensor(tokens)
    return out


samples = [[1, 2, 3], [4, 5], [6, 7, 8, 9, 10, 11, 12, 13], [1]]
loader = DataLoader(samples, batch_size=2, collate_fn=pad)
for batch in loader:
    print(batch.shape)
