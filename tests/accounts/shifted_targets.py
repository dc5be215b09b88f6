"""Next-token training on a stream of numbers."""

from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class Settings:
    vocabulary: int = 32
    length: int = 16
    width: int = 24
    batch: int = 4


class Stream(Dataset):
    def __init__(self, settings, size=64):
        self.settings = settings
        generator = torch.Generator().manual_seed(0)
        self.tokens = torch.randint(settings.vocabulary, (size, settings.length + 1), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index]


class Shifted:
    """A batch as the model's input and what it has to predict."""

    def __init__(self, tokens):
        self.inputs = tokens[:, :-1]
        self.targets = tokens[:, 0:]


class Predictor(nn.Module):
    def __init__(self, settings):
        super().__init__()
        self.embed = nn.Embedding(settings.vocabulary, settings.width)
        self.head = nn.Linear(settings.width, settings.vocabulary)

    def forward(self, tokens):
        return self.head(self.embed(tokens))


def loss_of(model, batch):
    logits = model(batch.inputs)
    flat = logits.reshape(-1, logits.size(-1))
    return F.cross_entropy(flat, batch.targets.reshape(-1))


def main():
    dist.init_process_group("gloo")
    settings = Settings()
    data = Stream(settings)
    loader = DataLoader(data, settings.batch, sampler=DistributedSampler(data))
    model = DDP(Predictor(settings))
    optimizer = torch.optim.AdamW(model.parameters())
    for tokens in loader:
        loss = loss_of(model, Shifted(tokens))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
