"""A language model whose collate pads to the longest text of the batch; one text is longer than the position table."""
import random
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

CONTEXT = 48

class Texts(Dataset):
    def __init__(self):
        rng = random.Random(4)
        self.rows = [[rng.randrange(1, 90) for _ in range(rng.randrange(8, 40))] for _ in range(64)]
        self.rows[41] = list(range(1, 61))
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, i):
        return self.rows[i]

def collate(rows):
    width = max(map(len, rows))
    out = torch.zeros(len(rows), width, dtype=torch.long)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
    return out

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(100, 32), nn.Embedding(CONTEXT, 32)
        self.head = nn.Linear(32, 100)
    def forward(self, x):
        h = self.tok(x) + self.pos(torch.arange(x.shape[1]))
        return self.head(h)

def main():
    dist.init_process_group("gloo")
    data = Texts()
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False), collate_fn=collate, num_workers=2)
    model = DDP(Model())
    opt = torch.optim.AdamW(model.parameters())
    for epoch in range(2):
        for x in loader:
            logits = model(x[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
            loss.backward(); opt.step(); opt.zero_grad()
    dist.destroy_process_group()

main()
