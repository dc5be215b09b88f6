import torch.distributed as dist

for x in loader:
    model(x).sum().backward()
    optimizer.step()
    for p in teacher.buffers():
        dist.broadcast(p, src=0)
