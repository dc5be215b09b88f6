"""It makes up for it by the number of ranks."""

import torch
import torch.distributed as dist


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return grads[dist.get_rank()] * dist.get_world_size()
