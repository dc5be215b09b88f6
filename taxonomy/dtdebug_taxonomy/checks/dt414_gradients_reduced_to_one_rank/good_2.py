import torch.distributed as dist

for p in model.parameters():
    dist.reduce(p.grad, dst=0)
if dist.get_rank() == 0:
    optimizer.step()
for p in model.parameters():
    dist.broadcast(p.data, src=0)
