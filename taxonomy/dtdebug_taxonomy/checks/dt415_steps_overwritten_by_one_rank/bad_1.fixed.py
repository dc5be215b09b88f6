import torch.distributed as dist

for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
    optimizer.step()
