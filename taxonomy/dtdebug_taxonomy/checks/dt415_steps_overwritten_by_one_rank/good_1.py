import torch.distributed as dist

for p in model.parameters():
    dist.broadcast(p.data, src=0)
for x in loader:
    model(x).sum().backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
    optimizer.step()
