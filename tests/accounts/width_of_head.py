import torch
from torch import nn

CONFIG = {
    "hidden": 48,
    "heads": 5,
    "layers": 2,
}


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.attention = nn.MultiheadAttention(cfg["hidden"], cfg["heads"], batch_first=True)

    def forward(self, x):
        return x + self.attention(x, x, x)[0]


def build(cfg):
    return nn.Sequential(*[Block(cfg) for _ in range(cfg["layers"])])


model = build(CONFIG)
print(model(torch.randn(2, 7, CONFIG["hidden"])).shape)
