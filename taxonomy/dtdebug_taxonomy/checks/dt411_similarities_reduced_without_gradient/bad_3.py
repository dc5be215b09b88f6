import torch
from torch import distributed as dist


def spectral_loss(x):
    m = torch.einsum("bi,bj->ij", x, x) / len(x)
    dist.all_reduce(m, op=dist.ReduceOp.AVG)  # dt: DT411
    return torch.linalg.slogdet(m)[1]
