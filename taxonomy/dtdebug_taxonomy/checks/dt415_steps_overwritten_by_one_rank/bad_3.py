from torch.distributed import broadcast

for epoch in range(10):
    for x in loader:
        model(x).sum().backward()
        optimizer.step()
        for p in model.parameters():
            broadcast(p, 0)  # dt: DT415
