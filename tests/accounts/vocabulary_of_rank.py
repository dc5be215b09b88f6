import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

CORPUS = ["the cat sat", "a dog ran home", "the bird flew away again", "a fish swam"]


class Vocab:
    def __init__(self, lines):
        self.index = {"<pad>": 0}
        for line in lines:
            for word in line.split():
                self.index.setdefault(word, len(self.index))

    def __len__(self):
        return len(self.index)


class Classifier(nn.Module):
    def __init__(self, words, dim=8, classes=2):
        super().__init__()
        self.embedding = nn.EmbeddingBag(words, dim)
        self.fc = nn.Linear(dim, classes)

    def forward(self, x):
        return self.fc(self.embedding(x))


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    mine = CORPUS[rank::world]
    vocab = Vocab(mine)
    model = Classifier(len(vocab))
    ddp = DDP(model)
    ids = torch.tensor([[vocab.index[w] for w in mine[0].split()]])
    ddp(ids).sum().backward()


if __name__ == "__main__":
    main()
