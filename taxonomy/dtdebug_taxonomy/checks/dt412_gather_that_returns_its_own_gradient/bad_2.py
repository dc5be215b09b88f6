import torch
from torch import distributed


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.rank = distributed.get_rank()
        out = x.new_empty(distributed.get_world_size() * len(x), *x.shape[1:])
        distributed.all_gather_into_tensor(out, x)
        ctx.n = len(x)
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad.view(-1, ctx.n)[ctx.rank]  # dt: DT412
