import torch

for inputs, targets in loader:
    try:
        criterion(model(inputs), targets).backward()
    except RuntimeError:
        torch.cuda.empty_cache()
