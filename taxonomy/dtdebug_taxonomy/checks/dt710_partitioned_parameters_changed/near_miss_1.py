import deepspeed
import torch

total = torch.zeros(1)
with deepspeed.zero.GatheredParameters([p for p in model.parameters()]):
    for p, copy in zip(model.parameters(), copies):
        total.add_(p.norm())
        model.requires_grad_(False)
