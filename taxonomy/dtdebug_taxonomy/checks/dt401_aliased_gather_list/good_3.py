import torch
import torch.distributed as dist


def pieces(x, sizes):
    outs = [torch.zeros(0)] * len(sizes)
    for i, size in enumerate(sizes):
        outs[i] = torch.empty(size, dtype=x.dtype, device=x.device)
    dist.all_gather(outs, x)
    bounds = [torch.zeros(1) for _ in sizes]
    dist.gather(x[:1], bounds if dist.get_rank() == 0 else None)
    return outs
