import torch

for i, batch in enumerate(loader):
    model(batch).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
