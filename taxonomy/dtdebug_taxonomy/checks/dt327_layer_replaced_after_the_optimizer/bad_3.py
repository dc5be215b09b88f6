import torch
from torch import nn


def build(vocab):
    model = load("base")
    opt = torch.optim.Adam(model.parameters())
    model.embed = nn.Embedding(vocab, 64)  # dt: DT327
    return model, opt
