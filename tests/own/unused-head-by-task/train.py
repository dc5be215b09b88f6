from __future__ import annotations

import torch
import torch.nn as nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class Encoder(nn.Module):
    def __init__(self, vocab=50, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.norm = nn.LayerNorm(dim)
        self.proj = nn.Linear(dim, dim, bias=False)

    def forward(self, tokens):
        return self.proj(self.norm(self.embed(tokens)).mean(1))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.cls = nn.Linear(16, 3)
        self.recon = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 50))

    def forward(self, tokens, task="cls"):
        h = self.encoder(tokens)
        return self.cls(h) if task == "cls" else self.recon(h)


def train(model: nn.Module, steps: int = 6) -> None:
    optim = torch.optim.AdamW(model.parameters(), lr=3e-4)
    criterion = nn.CrossEntropyLoss()
    for _ in range(steps):
        tokens = torch.randint(0, 50, (8, 12))
        labels = torch.randint(0, 3, (8,))
        optim.zero_grad(set_to_none=True)
        criterion(model(tokens), labels).backward()
        optim.step()


def main() -> None:
    dist.init_process_group(backend="gloo")
    net = TwoHeads()
    ddp = DistributedDataParallel(net)
    train(ddp)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
