import torch

for x in loader:
    loss_d(x).backward()
    opt_d.step()
    loss_g(x).backward()
    torch.nn.utils.clip_grad_norm_(generator.parameters(), 1.0)
    opt_g.step()
