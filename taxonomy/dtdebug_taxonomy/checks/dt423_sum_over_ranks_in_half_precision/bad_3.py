import torch
from torch import distributed


def total(x):
    x = x.to(dtype=torch.half)
    distributed.reduce(x, 0)  # dt: DT423
    return x
