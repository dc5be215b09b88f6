import random

from accelerate import Accelerator
from torch.utils.data import DataLoader, Dataset


class Captions(Dataset):
    def __init__(self, rows, limit):
        super().__init__()
        self.rows = rows[:limit]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        random.shuffle(self.rows[i])
        return self.rows[i]


accelerator = Accelerator()
loader = accelerator.prepare(DataLoader(Captions([1, 2, 3], 2), batch_size=2))
