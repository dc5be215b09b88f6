import torch


def closure():
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # gradients of an earlier pass: nothing is known of them
    second.step()


for i, x in enumerate(loader):
    model(x).mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if i % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
