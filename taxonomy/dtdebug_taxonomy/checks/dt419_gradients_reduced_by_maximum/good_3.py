import torch.distributed as dist


def largest(model, optimizer):
    norm = max(p.grad.abs().max() for p in model.parameters())
    dist.all_reduce(norm, op=dist.ReduceOp.MAX)
    optimizer.step()
    return norm
