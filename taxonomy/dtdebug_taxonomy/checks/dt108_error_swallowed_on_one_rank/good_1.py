from torch.nn.parallel import DistributedDataParallel as DDP

model = DDP(net)
for batch in loader:
    try:
        loss = model(batch).sum()
        loss.backward()
    except RuntimeError:
        print("failed at", batch.ids)
        raise
