import torch.distributed as dist

for x, y in loader:
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    for p in model.parameters():
        dist.broadcast(p.data, src=0)  # dt: DT415
