import torch
import torch.distributed as dist


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = [torch.zeros_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(out, x)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        total = torch.stack(grads)
        dist.all_reduce(total)
        return total[dist.get_rank()]


def loss(z):
    every = torch.cat(Gather.apply(z))
    return (z @ every.t()).logsumexp(1).mean()
