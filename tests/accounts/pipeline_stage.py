import torch
from torch import nn

WIDTHS = [8, 16, 32, 16]


def layers(widths):
    made = []
    for i in range(len(widths)):
        made.append(nn.Linear(widths[i], widths[i + 1]))
    return made


class Stack(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.blocks = nn.ModuleList(layers(widths))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


net = Stack(WIDTHS)
print(net(torch.randn(2, 8)).shape)
