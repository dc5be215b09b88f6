import torch.distributed as dist

for p in model.parameters():
    dist.broadcast(p.data, src=0)
loss.backward()
optimizer.step()
