import torch.distributed as dist
from torch.autograd import Function


class Collect(Function):
    @staticmethod
    def forward(ctx, tensor, sizes, rank):
        ctx.rank = rank
        parts = [tensor.new_empty(n) for n in sizes]
        dist.all_gather(parts, tensor)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *grads):
        return grads[ctx.rank], None, None  # dt: DT412
