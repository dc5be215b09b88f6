import torch
from torch import nn

text = "the quick brown fox jumps over the lazy dog"
words = sorted(set(text.split()))
index = {word: number + 1 for number, word in enumerate(words)}


class Tagger(nn.Module):
    def __init__(self, vocabulary, width=8):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.out = nn.Linear(width, 4)

    def forward(self, tokens):
        return self.out(self.embed(tokens))


model = Tagger(len(index))
tokens = torch.tensor([[index[w] for w in text.split()]])
print(model(tokens).shape)
