"""The step that a weight takes, clipped before and after unscale_."""

import torch

for before in (True, False):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=65536.0)
    scaler.scale((weight * 3).sum()).backward()
    if not before:
        scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_([weight], 1.0)
    scaler.step(optimizer)
    print(f"clipped {'before' if before else 'after'} unscale_: the weight goes from 0 to {weight.item():.6f}")
