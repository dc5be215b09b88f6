import torch
import torch.distributed as dist


def step(model, optimizer, limit, distributed):
    if limit:
        torch.nn.utils.clip_grad_value_(model.parameters(), limit)  # dt: DT420
    if distributed:
        for p in model.parameters():
            if p.grad is not None:
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
    optimizer.step()
    optimizer.zero_grad()
