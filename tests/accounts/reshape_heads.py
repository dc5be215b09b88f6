import argparse

import torch


class Attention(torch.nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.qkv = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(batch, length, self.heads, self.head_dim)
        return q.sum()


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--dim", type=int, default=100)
    p.add_argument("--heads", type=int, default=8)
    return p.parse_args()


args = parse()
layer = Attention(args.dim, heads=args.heads)
print(layer(torch.randn(2, 5, args.dim)))
