"""The program tests the number itself, the list grows after it was made, or the value is another function's."""

import torch
import torch.distributed as dist
import torch.nn as nn

width, heads = 100, 12
if width % heads == 0:
    layer = nn.MultiheadAttention(width, heads)

parts = []
for _ in range(dist.get_world_size()):
    parts.append(torch.zeros(4))
dist.all_gather(parts, torch.ones(4))


def attention(width, heads):
    return nn.MultiheadAttention(width, heads)
