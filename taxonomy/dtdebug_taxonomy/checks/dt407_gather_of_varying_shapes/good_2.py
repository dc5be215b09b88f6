import torch
import torch.distributed as dist
import torch.nn.functional as F


def collect(x):
    x = x[x > 0]
    length = torch.tensor([x.numel()])
    lengths = [torch.zeros_like(length) for _ in range(dist.get_world_size())]
    dist.all_gather(lengths, length)
    longest = int(max(lengths))
    padded = F.pad(x, (0, longest - x.numel()))
    parts = [torch.zeros_like(padded) for _ in lengths]
    dist.all_gather(parts, padded)
    return [p[: int(n)] for p, n in zip(parts, lengths)]
