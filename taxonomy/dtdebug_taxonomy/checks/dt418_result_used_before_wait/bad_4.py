import torch
import torch.distributed as dist


def step(model, optimizer, size):
    works = []
    if size > 1:
        for p in model.parameters():
            works.append(dist.all_reduce(p.grad, async_op=True))
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # dt: DT418
    for work in works:
        work.wait()
    optimizer.step()
