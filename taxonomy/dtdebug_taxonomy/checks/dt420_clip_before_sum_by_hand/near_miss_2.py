import torch
import torch.distributed as dist


# Differentially private training limits what each rank gives.
def step(model, optimizer, limit, noise_multiplier):
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    for p in model.parameters():
        p.grad += noise_multiplier * limit * torch.randn_like(p.grad)
        dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    optimizer.step()
