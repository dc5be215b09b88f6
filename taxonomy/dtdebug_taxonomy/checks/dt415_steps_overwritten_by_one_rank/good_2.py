import torch.distributed as dist

for x in loader:
    model(x).sum().backward()
    if dist.get_rank() == 0:
        optimizer.step()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
