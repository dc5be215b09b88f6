import torch
import torch.distributed as dist


def step(model, optimizer, limit):
    for p in model.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    optimizer.step()
