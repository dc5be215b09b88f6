import torch
import torch.distributed as dist


def step(model, optimizer):
    bad = torch.zeros(1)
    for p in model.parameters():
        bad += (~torch.isfinite(p.grad)).sum()
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    if not bad.item():
        optimizer.step()
