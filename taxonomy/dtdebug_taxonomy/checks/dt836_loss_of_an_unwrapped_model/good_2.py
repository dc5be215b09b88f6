import torch
from accelerate import Accelerator


def fit(model, optimizer, loader):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    inner = accelerator.unwrap_model(model)
    for batch in loader:
        with torch.no_grad():
            target = inner(batch)
        accelerator.backward((model(batch) - target).square().mean())
        optimizer.step()
        optimizer.zero_grad()
