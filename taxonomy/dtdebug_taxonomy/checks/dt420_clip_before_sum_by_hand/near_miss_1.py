import torch
import torch.distributed as dist


# What is summed over a group of its own are the parts of one gradient, and what is reduced here is its norm.
def step(model, optimizer, limit, group, noise):
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    dist.all_reduce(norm)
    for p in model.replicated():
        dist.all_reduce(p.grad, group=group)
    optimizer.step()
